"""What a server says of itself, and refuses to hide: the truth half of the series."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.runner.profiles import EFFORTS
from tests.support import runner
from tests.support.runner_server import Server, refused

FLAGS = (
    "--expect-chat-template-sha256=" + "0" * 64,
    "--refuse-unknown-reasoning-effort",
    "--require-requested-backends",
    "--progress-timeout=5",
    "--min-draft-acceptance=0.3",
)


def until(true: Callable[[], bool], seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.2)
    return bool(true())


def words_of(server: Server) -> list[str]:
    """Of the command line that started it."""
    command = server.process.args
    assert isinstance(command, list)
    return [str(word) for word in command]


def effort(server: Server, value: str | None) -> requests.Response:
    body: dict[str, Any] = {"model": "tiny", "max_tokens": 4}
    body["messages"] = [{"role": "user", "content": "short"}]
    if value is not None:
        body["reasoning_effort"] = value
    return server.post("/v1/chat/completions", body)


def test_a_stock_server_knows_none_of_the_flags(release: str, tmp_path: Path) -> None:
    """The program, and the one that the tests fork instead of it, word for word."""
    said = refused(runner.stock(release), tmp_path / "program", *FLAGS, program=True)
    wrong = said.partition("unrecognized arguments:")[2]
    assert all(flag in wrong for flag in FLAGS), said
    forked = refused(runner.stock(release), tmp_path / "forked", *FLAGS)
    assert timeless(forked) == timeless(said)


def timeless(log: str) -> str:
    return re.sub(r"\b\d\d-\d\d \d\d:\d\d:\d\d\b", "WHEN", log)


@pytest.mark.serves("stock")
def test_a_stock_server_says_nothing(server: Server) -> None:
    assert "chat_template" not in server.get("/version").json()
    assert server.get("/progress").status_code == 404
    assert effort(server, "medium").status_code == 200
    for text in ("sha256", "Backends of", "easoning effort"):
        assert text not in server.log, text


@pytest.mark.serves("stock")
def test_a_wedged_stock_server_is_healthy(server: Server) -> None:
    with busy(server), wedged(server):
        time.sleep(6)
        assert server.get("/health").status_code == 200


@pytest.mark.serves("plain")
def test_the_models_own_template_is_named(server: Server) -> None:
    """As the tiny model's folder holds it, byte for byte."""
    words = words_of(server)
    model = Path(words[words.index("serve") + 1])
    own = hashlib.sha256((model / "chat_template.jinja").read_bytes()).hexdigest()
    said = server.get("/version").json()
    assert said["chat_template"] == {"source": "the model", "sha256": own}
    assert list(said) == ["version", "patchq", "chat_template"]
    (line,) = [line for line in server.log.splitlines() if "Chat template " in line]
    assert own in line and str(model) in line


@pytest.mark.serves("truth")
def test_a_given_template_is_named(server: Server) -> None:
    """The profile expects this very hash: the server would not have started otherwise."""
    given = hashlib.sha256(EFFORTS.read_bytes()).hexdigest()
    said = server.get("/version").json()["chat_template"]
    assert said == {"source": "--chat-template", "sha256": given}
    assert EFFORTS.name not in json.dumps(said)
    assert f"Chat template '{EFFORTS}'" in server.log and given in server.log


def test_another_template_is_refused(release: str, tmp_path: Path) -> None:
    """Before the model is loaded, the model's own template and a file alike."""
    engine = runner.patched(release)
    given = hashlib.sha256(EFFORTS.read_bytes()).hexdigest()
    own = (engine.model / "chat_template.jinja").read_bytes()
    for number, flags in enumerate(
        (
            ("--chat-template", str(EFFORTS), "--expect-chat-template-sha256", "0" * 64),
            ("--expect-chat-template-sha256", given),
        )
    ):
        said = refused(engine, tmp_path / str(number), *flags)
        found = given if number == 0 else hashlib.sha256(own).hexdigest()
        assert f"has sha256 {found}, and --expect-chat-template-sha256" in said, said
        assert "EngineCore" not in said, "the engine was started"


@pytest.mark.serves("truth")
def test_an_unknown_effort_is_refused_with_the_known_ones(server: Server) -> None:
    assert (
        "the chat template knows none, low, high, max; it renders minimal, medium, xhigh as "
        "'max'; a request that gives none gets 'max'" in server.log
    )
    for known in (None, "none", "low", "high", "max"):
        assert effort(server, known).status_code == 200, known
    for unknown in ("medium", "minimal", "xhigh"):
        answer = effort(server, unknown)
        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == "reasoning_effort"
        assert "renders it as 'max'. It knows: none, low, high, max." in answer.text
    body = {"model": "tiny", "input": "short", "max_output_tokens": 4}
    for value, status in (("high", 200), ("medium", 400)):
        answer = server.post("/v1/responses", {**body, "reasoning": {"effort": value}})
        assert answer.status_code == status, answer.text
    named = server.post(
        "/v1/chat/completions",
        {
            "model": "tiny",
            "messages": [{"role": "user", "content": "short"}],
            "chat_template_kwargs": {"reasoning_effort": "turbo\n"},
        },
    )
    assert named.status_code == 400 and "'turbo\\n'" in named.json()["error"]["message"]


@pytest.mark.serves("plain")
def test_an_effort_without_effect_is_said_once(server: Server) -> None:
    """This template knows no effort at all; without the flag the request is served."""
    assert "the chat template does not use reasoning_effort" in server.log
    for _ in range(3):
        assert effort(server, "medium").status_code == 200
    warned = [line for line in server.log.splitlines() if "'medium' is unknown" in line]
    assert len(warned) == 1 and "WARNING" in warned[0]


@pytest.mark.serves("plain", "truth")
def test_the_backends_are_said(server: Server) -> None:
    lines = [line for line in server.log.splitlines() if "backends_table.py" in line]
    table = {row[0]: row for row in (line.partition("] ")[2].split() for line in lines) if row}
    assert "CPU_ATTN" in table["attention"] and "x2" in table["attention"]
    assert "UnquantizedLinearMethod" in table["linear"]
    assert "(bfloat16)" in table["kv"]
    asked = "TRITON_ATTN" in words_of(server)
    assert ("FALLBACK" in table["attention"]) is asked
    assert not any("FALLBACK" in row for name, row in table.items() if name != "attention")


def test_a_fallback_is_an_error_with_the_flag(release: str, tmp_path: Path) -> None:
    """The CPU takes its own attention, whatever is asked for, without a word."""
    flags = ("--attention-backend", "TRITON_ATTN", "--require-requested-backends")
    said = refused(runner.patched(release), tmp_path, *flags)
    assert "attention: TRITON_ATTN was requested, in use: CPU_ATTN" in said, said[-2000:]


@pytest.mark.serves("plain")
def test_without_a_timeout_progress_judges_nothing(server: Server) -> None:
    answer = server.get("/progress")
    assert answer.status_code == 200
    assert (answer.json()["status"], answer.json()["timeout"]) == ("idle", None)
    with busy(server), wedged(server):
        time.sleep(6)
        answer = server.get("/progress")
    assert answer.status_code == 200 and answer.json()["status"] == "busy"
    assert answer.json()["seconds_without_progress"] > 5


@pytest.mark.serves("guards")
def test_a_wedged_server_makes_no_progress(server: Server) -> None:
    assert until(lambda: server.get("/progress").json()["status"] == "idle")
    with busy(server):
        moving = server.get("/progress")
        with wedged(server):
            assert until(lambda: server.get("/progress").status_code == 503, 30)
            still = server.get("/progress").json()
            assert server.get("/health").status_code == 200
        assert until(lambda: server.get("/progress").status_code == 200)
    assert moving.status_code == 200 and moving.json()["generation_tokens"] > 0
    assert still["status"] == "stalled" and still["timeout"] == 5.0
    assert still["seconds_without_progress"] >= 5 and still["unfinished_requests"] == 1
    # The client is gone: nothing is under way, and nothing stands still.
    assert until(lambda: server.get("/progress").json()["status"] == "idle")


@pytest.mark.serves("speculative")
def test_drafts_that_are_not_accepted_are_warned_about(server: Server) -> None:
    """ngram drafts what followed in the prompt, and there each fifth word is another one.

    Another test on this server may have brought the warning already.
    """
    alarm = "vllm:spec_decode_alarm"
    steps = [f" w{n}" + " w59" * (n % 5 == 4) for n in range(59)]
    end = time.monotonic() + 60
    while not server.metric(alarm, reason="low_acceptance") and time.monotonic() < end:
        server.chat("wander" + "".join(steps), max_tokens=60)
    drafted = server.metric("vllm:spec_decode_num_draft_tokens_total")
    accepted = server.metric("vllm:spec_decode_num_accepted_tokens_total")
    assert server.metric(alarm, reason="low_acceptance") >= 1, (accepted, drafted)
    lines = [line for line in server.log.splitlines() if ": low_acceptance:" in line]
    assert lines and all("WARNING" in line for line in lines)
    assert all("minimum 0.3), by position " in line for line in lines)


def test_an_alarm_without_speculation_is_refused(release: str, tmp_path: Path) -> None:
    said = refused(runner.patched(release), tmp_path, "--min-draft-acceptance", "0.3")
    assert "--min-draft-acceptance is given and nothing drafts" in said, said[-2000:]


@pytest.fixture
def drafter(tmp_path: Path) -> Path:
    """The configuration of a DFlash2 drafter with blocks of 8: an anchor and 7 draft tokens."""
    shape = {"hidden_size": 1024, "num_hidden_layers": 1, "num_attention_heads": 16}
    shape |= {"num_key_value_heads": 16, "head_dim": 64, "intermediate_size": 256}
    shape |= {"vocab_size": 1000, "max_position_embeddings": 2048}
    block = {"mask_token_id": 3, "target_layer_ids": [0], "conv_kernel_size": 3}
    block |= {"conv_group_size": 2, "selector_rank": 4, "selector_top_k": 4}
    config = {"architectures": ["DFlash2DraftModel"], "model_type": "qwen3", "block_size": 8}
    folder = tmp_path / "drafter"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({**config, **shape, "dflash_config": block}))
    return folder


def test_more_draft_tokens_than_trained_are_refused(
    release: str, tmp_path: Path, drafter: Path
) -> None:
    """On a CPU none of them starts: the speculator needs the other model runner.

    So what is told apart here is the reason: the number, or (the number was accepted) the CPU.
    """
    cpu = "Model Runner V1 does not support: "
    for name, engine, number, reason in (
        ("stock", runner.stock(release), 8, cpu),
        ("fewer", runner.patched(release), 5, cpu),
        ("more", runner.patched(release), 8, "is 8, and this DFlash2 drafter was trained for 7"),
    ):
        wanted = {"method": "dflash", "model": str(drafter), "num_speculative_tokens": number}
        said = refused(engine, tmp_path / name, "--speculative-config", json.dumps(wanted))
        assert reason in said, (name, said[-3000:])
        assert ("drafter was trained for 7 draft tokens." in said) is (name == "more")
        fewer = "DFlash2: 5 draft tokens, of the 7 that the drafter was trained for"
        assert (fewer in said) is (name == "fewer")


@contextmanager
def busy(server: Server) -> Iterator[None]:
    """One request after the other runs on; their client goes away at the end.

    One alone may be through before its first line is read: the server is quicker than its client.
    """
    tokens = server.get("/metrics").text  # the server is up, and idle or not: it answers
    assert tokens
    asking = _Asking(server)
    asking.start()
    assert asking.began.wait(60)
    try:
        yield
    finally:
        asking.over = True
        asking.answer.close()
        asking.join(10)


class _Asking(threading.Thread):
    """`began`: a first line has come."""

    answer: requests.Response

    def __init__(self, server: Server) -> None:
        super().__init__(daemon=True)
        self.url = f"{server.url}/v1/completions"
        self.began = threading.Event()
        self.over = False

    def run(self) -> None:
        body = {"model": "tiny", "prompt": "loop", "max_tokens": 1900, "ignore_eos": True}
        # The server's own detection would end it at once.
        body |= {"repetition_detection": {}, "stream": True}
        with suppress(Exception):  # closed while it reads
            while not self.over:
                self.answer = requests.post(self.url, json=body, stream=True, timeout=60)
                for line in self.answer.iter_lines():
                    assert not line or line.startswith(b"data: ")
                    self.began.set()


@contextmanager
def wedged(server: Server) -> Iterator[None]:
    """The engine's process stands still; the one that answers HTTP does not."""
    engines = [
        int(folder.name)
        for folder in Path("/proc").glob("[0-9]*")
        if _is_engine(folder, server.process.pid)
    ]
    assert engines, "no engine process"
    for pid in engines:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in engines:
            os.kill(pid, signal.SIGCONT)


def _is_engine(folder: Path, session: int) -> bool:
    """By its name and its session (proc(5))."""
    try:
        name = (folder / "cmdline").read_bytes()
        stat = (folder / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return b"VLLM::EngineCore" in name and int(stat.rpartition(") ")[2].split()[3]) == session
