"""`patchq smoke` as a user has it, against a server over real HTTP."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from patchq.smoke.catalog import PROBES
from tests.smoke.fake import Fake, serving
from tests.support import ready
from tests.support.cli import Outcome, program

PROFILE = """
model = "m"
served_name = "tiny"
template = "t"
draft = "d"
[speculation]
method = "ngram"
[smoke]
standstill = 5
acceptance = [[0.5, 0.95]]
"""


def patchq(*args: object, cwd: Path | None = None) -> Outcome:
    given = ("smoke", *map(str, args))
    done = ready.run(given, cwd=cwd or Path.cwd(), env=os.environ)
    return Outcome(given, done.returncode, done.stdout, done.stderr)


def text(outcome: Outcome) -> str:
    return outcome.err.decode()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    (tmp_path / "ci" / "profiles").mkdir(parents=True)
    (tmp_path / "ci" / "profiles" / "p.toml").write_text(PROFILE, encoding="utf-8")
    return tmp_path


def goldens(project: Path, prompt: str) -> None:
    """Of the conversation `plain` (patchq/doctor/conversations.py)."""
    (project / "upstream" / "goldens").mkdir(parents=True)
    document = {"schema": "patchq.goldens/1", "template": "t", "sha256": "0" * 64}
    (project / "upstream" / "goldens" / "t.json").write_text(
        json.dumps({**document, "conversations": {"plain": {"text": prompt}}}), encoding="utf-8"
    )


def test_a_good_server_with_its_profile(project: Path) -> None:
    goldens(project, "<|user|>\nWhich is larger, 9.9 or 9.11?<|assistant|>\n<think>")
    with serving(Fake()) as fake:
        done = patchq("--url", f"{fake.url}/v1/", "--profile", "p", "--json", cwd=project)
    assert done.code == 0, done
    found = done.json
    assert found["schema"] == "patchq.smoke/1" and found["ok"] is True
    assert found["server"]["model"] == "tiny"
    assert found["server"]["version"]["patchq"]["tree"] == "1" * 40
    assert (found["profile"], found["server"]["context"]) == ("p", 4096)
    states = {each["name"]: each["state"] for each in found["probes"]}
    left_out = {"ranks", "memory", "backends", "logs", "image"}  # no cluster, no images
    assert {name for name, state in states.items() if state != "passed"} == left_out
    assert (found["runner"], found["rounds"]) == (None, 1)
    assert [each["name"] for each in found["probes"]] == [each.name for each in PROBES]
    (recall,) = (each for each in found["probes"] if each["name"] == "recall")
    (exchange,) = recall["exchanges"]
    assert exchange["content"] in exchange["asked"] and exchange["finish"] == "stop"


def test_a_template_that_is_not_the_pinned_one(project: Path) -> None:
    goldens(project, "<|user|>\nWhich is larger, 9.9 or 9.11?<|assistant|>\n")
    with serving(Fake()) as fake:
        done = patchq("--url", fake.url, "--profile", "p", "--only", "template", cwd=project)
    assert done.code == 5
    assert "the conversation plain: from character 52 on the prompt is" in " ".join(
        done.text.split()
    )


def test_what_failed_is_told_with_its_rule_and_does_not_hide_the_others() -> None:
    with serving(Fake(frozenset({"texts"}))) as fake:
        done = patchq("--url", fake.url, "--only", "tool-auto", "--only", "recall")
    assert done.code == 5
    assert "failed  tool-auto" in done.text and "rule: one call, the right tool" in done.text
    assert "vLLM #49248" in done.text
    assert "passed  recall" in done.text
    assert "passed: recall: it says" in text(done)


def test_a_server_that_accepts_and_never_answers() -> None:
    with serving(Fake(frozenset({"silent"}))) as fake:
        done = patchq("--url", fake.url, "--patience", "0.5")
    assert done.code == 6
    assert "accepted, but no answer within 0.5 s" in text(done)


def test_a_server_that_is_not_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://me:secret@127.0.0.1:{free.getsockname()[1]}"
        done = patchq("--url", address)
    assert done.code == 6
    assert "cannot be reached" in text(done) and "secret" not in text(done)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((), "start one, and name it: --cluster sparks, or --url http://localhost:8000"),
        (("--url", "http://127.0.0.1:9", "--cluster", "sparks"), "smoke of which server?"),
        (("--url", "localhost:8000"), "is no address of a server"),
        (("--url", "http://x:port"), "is no address of a server"),
        (("--url", "http://127.0.0.1:9", "--only", "luck"), "there is no probe 'luck'"),
        (("--url", "http://127.0.0.1:9", "--repeat", "3"), "--repeat is for a conversation"),
        (
            ("--url", "http://127.0.0.1:9", "--replay", "f", "--only", "up"),
            "--replay asks no probes",
        ),
    ],
)
def test_a_command_line_that_makes_no_sense(args: tuple[str, ...], says: str) -> None:
    done = patchq(*args)
    assert done.code == 2
    assert says in text(done)


# --- --replay -------------------------------------------------------------------------------


def conversation(folder: Path, value: Any) -> Path:
    path = folder / "conversation.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_a_conversation_is_asked_again_and_again(tmp_path: Path) -> None:
    body = {
        "model": "another",
        "stream": False,
        "temperature": 0.7,
        "max_tokens": 100,
        "messages": [
            {"role": "user", "content": "The code is amber 42. Reply with the code alone."}
        ],
    }
    with serving(Fake()) as fake:
        done = patchq(
            "--url", fake.url, "--replay", conversation(tmp_path, body), "--repeat", 3, "--json"
        )
    assert done.code == 0, done
    (probe,) = done.json["probes"]
    assert probe["name"] == "replay" and probe["evidence"] == {"asked": 3, "wrong": 0}
    assert [each["content"] for each in probe["exchanges"]] == ["amber 42"] * 3
    assert {body["temperature"] for body in fake.asked} == {0.7}


def test_a_conversation_that_spins(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "Write one sentence about amber"}]
    value = {"messages": messages, "max_tokens": 4000}
    with serving(Fake(frozenset({"spinning"}))) as fake:
        done = patchq("--url", fake.url, "--replay", conversation(tmp_path, value), "--repeat", 2)
    assert done.code == 5
    assert "2 of 2 times: it spins" in done.text


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "is no JSON"),
        ("[]", "has no messages"),
        ('{"messages": [1]}', "has no messages"),
        ('"text"', "has no messages"),
        ("[" * 100_000, "is no JSON"),
    ],
)
def test_a_file_that_is_no_conversation(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "conversation.json"
    path.write_text(content, encoding="utf-8")
    with serving(Fake()) as fake:
        done = patchq("--url", fake.url, "--replay", path)
    assert done.code == 1
    assert says in text(done)


# --- Bad days -------------------------------------------------------------------------------


def test_ctrl_c_ends_it_though_answers_are_waited_for() -> None:
    with serving(Fake(frozenset({"wedged"}))) as fake:
        running = subprocess.Popen(
            [program(), "smoke", "--url", fake.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert fake.taken.wait(60)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    assert (running.returncode, out) == (130, b"")
    assert b"interrupted" in err


def test_the_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Fake(key="s3cret")) as fake:
        refused = patchq("--url", fake.url, "--only", "recall")
        monkeypatch.setenv("VLLM_API_KEY", "s3cret")
        let_in = patchq("--url", fake.url, "--only", "recall", "--json")
    assert refused.code == 6
    assert "answers 401" in text(refused) and "VLLM_API_KEY" in text(refused)
    assert let_in.code == 0
    assert b"s3cret" not in let_in.out + let_in.err


def test_a_redirect_is_not_followed() -> None:
    with serving(Fake(frozenset({"elsewhere"}))) as fake:
        done = patchq("--url", fake.url)
    assert done.code == 1
    assert "answers 307" in text(done)


def test_rounds_and_a_file_to_keep_them_in(tmp_path: Path) -> None:
    kept = tmp_path / "found.json"
    args = ("--only", "recall", "--only", "counters", "--rounds", 3, "--seed", 5, "--out", kept)
    with serving(Fake()) as fake:
        done = patchq("--url", fake.url, *args)
    assert done.code == 0, done
    assert "3 rounds; --seed 5" in done.text and "in 3 rounds; it says " in done.text
    found = json.loads(kept.read_text(encoding="utf-8"))
    assert (found["rounds"], found["runner"], found["ok"]) == (3, None, True)
    assert [each["name"] for each in found["probes"]] == ["recall", "counters"]
    assert found["when"].endswith("+00:00")
