"""Each fault, built into a real vLLM that serves a model which answers and sees, is found by its probe
and by no other. All but the spinning models on one server: its faults are switched while it runs."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from patchq.doctor import goldens
from patchq.doctor.conversations import ALL
from patchq.doctor.rendering import ChatTemplate
from patchq.smoke.asking import Setting
from patchq.smoke.bounds import Bounds
from patchq.smoke.client import Client
from patchq.smoke.model import Golden
from patchq.smoke.questions import Values, recall, story
from patchq.smoke.report import Report
from patchq.smoke.run import chosen, run
from tests.runner.profiles import ANSWERS, GUARDED_ANSWERS
from tests.support import answering, runner, vllm_faults
from tests.support.runner_server import Server, serving
from tests.support.seeing import seeing

NGRAM = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4}
NOT_ASKED = {"ranks", "memory", "backends", "logs"}
"""There is no cluster."""
FAULTS = {
    "wrong template": {"template": "the conversation "},
    "leaks": {"thinking-off": "the content has a thought, up to </think>: 'Let me see.</think>"},
    "markup": {"markup": "</arg_value> stands in what the user sees"},
    "no calls": {
        "tool-auto": "0 calls came",
        "tool-forced": "0 calls came",
        "tool-loop": "after 0 calls it says",
    },
    "cache off": {"cache": "0 of ", "prefixes": "0 of "},
    "cache corrupt": {"cache": "it answers", "prefixes": "it answers", "blocks": "at "},
    "no drafts": {"speculation": "no drafting: not one token was drafted"},
    "pinned": {"speculation": "position 0 is accepted in 100.0%"},
    "long": {"long": "at 1,792 tokens: "},
    "preempts": {"counters": "requests ended badly: preempted "},
    # One has nothing to do with the other.
    "ill\nforgets\nno stop\ntoo short\nno form": {
        "up": "/health answers 503",
        "turns": "it answers ",
        "stop": "it answers ",
        **dict.fromkeys(("long-form", "speculation"), "it was cut at the limit, after 60 tokens"),
        "structured": "it was cut at the limit, after 5 tokens",
    },
    "mixed": {"four-at-once": "two of 4 requests got one answer"},
    "wrong digits": {
        **dict.fromkeys(("recall", "turns", "four-at-once", "thinking-on"), "it answers "),
        **dict.fromkeys(("structured", "markup", "cache", "prefixes", "long"), "it answers "),
        "thinking-off": "the content is ",
    },
    "wrong eyes": {"image": "a red square is 'blue'"},
}
BESIDE = {"mixed": {"recall", "thinking-off", "prefixes"}}
"""What may fail as well, where it is asked at the same time."""
SPINS = {"spin", "thinking-on", "stop-in-thought", "long"}
ENDED = re.compile(
    r"failed: (at 1,000 tokens: )?(the server's guard ended its thought \((loop|cap)\)|it spins: .*)"
)
CLOSED: dict[str, dict[str, Any]] = {
    # What goes round in seven tokens is a loop; what does so in twelve is not, with these guards.
    "the server's guard ended its thought (loop)": {"content": story("raven")},
    "the server's guard ended its thought (cap)": {"content": recall("amber 42")},
    # The request's own budget is no guard, and after it the answer goes round.
    "it ended with 'repetition' (repetition_detected)": {
        "content": story("raven"),
        "thinking_token_budget": 10,
    },
}
"""What is said of answers that are too short to be seen to spin."""


def pinned(model: Path) -> tuple[Golden, ...]:
    """What the model's own template renders, as a profile pins it."""
    text = (model / "chat_template.jinja").read_text(encoding="utf-8")
    found = goldens.render(ChatTemplate(text))
    return tuple(
        Golden(each.name, each.messages, each.tools, each.values, made.text, made.refused)
        for each in ALL
        for made in (found[each.name],)
    )


def setting(
    server: Server, seed: int, model: Path, *, drafts: bool, standstill: float = 90
) -> Setting:
    client = Client(server.url, patience=60)
    return Setting(
        client,
        client.about(),
        Values(seed),
        Bounds(standstill=standstill),
        profile="p",
        drafts=drafts,
        goldens=pinned(model),
    )


def smoke(*args: Any, **kwargs: Any) -> Report:
    return run(setting(*args, **kwargs), chosen(()))


def wrong(report: Report) -> dict[str, str]:
    return {
        each.probe.name: f"{each.state}: {each.says}"
        for each in report.outcomes
        if each.state != "passed" and each.probe.name not in NOT_ASKED
    }


@pytest.fixture(scope="module")
def switch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("switch") / "fault"


@pytest.fixture(scope="module")
def served(
    release: str, tmp_path_factory: pytest.TempPathFactory, switch: Path
) -> Iterator[tuple[Server, Path]]:
    plain = answering.models(runner.environment(release)).answers
    made = seeing(plain, tmp_path_factory.mktemp("model") / "seeing")
    engine = replace(runner.patched(release), model=made)
    folder = tmp_path_factory.mktemp("faults")
    plugin = vllm_faults.plugin(tmp_path_factory.mktemp("plugin"))
    env = {"PYTHONPATH": f"{engine.overlay}:{plugin}", vllm_faults.SWITCH: str(switch)}
    flags = (*ANSWERS, "--speculative-config", json.dumps(NGRAM))
    with serving(engine, folder, *flags, env=env) as server:
        yield server, made


@pytest.mark.timeout(1800)
def test_each_fault_fails_its_probe_alone(
    served: tuple[Server, Path], newest_alone: None, switch: Path
) -> None:
    server, model = served
    told = {}
    for seed, fault in enumerate(("", *FAULTS, "")):
        switch.write_text(fault, encoding="utf-8")
        report = smoke(server, seed, model, drafts=True)
        told[fault or f"none, {seed}"] = wrong(report)
        assert report.exit_code == (5 if fault else 0), told
    clean = [found for name, found in told.items() if name not in FAULTS]
    assert clean == [{}, {}]
    for fault, probes in FAULTS.items():
        assert set(told[fault]) - BESIDE.get(fault, set()) == set(probes), (fault, told[fault])
        for name, says in probes.items():
            assert told[fault][name].startswith("failed: "), told[fault]
            assert says in told[fault][name]


def test_an_engine_that_is_frozen_is_a_wedge(
    served: tuple[Server, Path], newest_alone: None
) -> None:
    """The last on this server. /health says 200 all the while."""
    server, model = served
    pids = [pid for pid, name in processes(server).items() if "EngineCore" in name]
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        assert server.get("/health").status_code == 200
        found = wrong(smoke(server, 90, model, drafts=True, standstill=4))
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    assert found.pop("progress").startswith("failed: a wedge: ")
    assert set(found.values()) == {"not run: the server stands still, see progress"}


def processes(server: Server) -> dict[int, str]:
    """The server's children, by what they call themselves."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text(encoding="utf-8").partition("(")[2].rpartition(")")
            line = (path.parent / "cmdline").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if int(rest.split()[3]) == server.process.pid:
            found[int(path.parent.name)] = f"{name} {line}"
    return found


def test_a_model_that_spins_is_found_where_it_thinks(
    release: str, newest_alone: None, tmp_path: Path
) -> None:
    """With the runner's own guards off, so that nothing but the watch ends it."""
    made = answering.models(runner.environment(release)).spins
    engine = replace(runner.patched(release), model=made)
    with serving(engine, tmp_path, *ANSWERS) as server:
        found = wrong(smoke(server, 5, made, drafts=False))
    found.pop("speculation")
    assert found.pop("image").startswith("left out: it takes no images: ")
    assert set(found) == SPINS, found
    assert {says.partition(": it spins")[0] for says in found.values()} <= {
        "failed",
        "failed: at 1,000 tokens",
    }


def test_a_thought_that_the_guards_had_to_end_is_no_pass(
    release: str, newest_alone: None, tmp_path: Path
) -> None:
    """Nor an answer: a user gets one, and perhaps the right one."""
    made = answering.models(runner.environment(release)).spins
    engine = replace(runner.patched(release), model=made)
    with serving(engine, tmp_path, *GUARDED_ANSWERS) as server:
        asked = setting(server, 6, made, drafts=False)
        found = wrong(run(asked, chosen(())))
        told = {says: said(asked, **what) for says, what in CLOSED.items()}
    found.pop("speculation")
    assert found.pop("image").startswith("left out: it takes no images: ")
    assert set(found) == SPINS, found
    assert all(ENDED.fullmatch(says) for says in found.values()), found
    assert told == {says: f"1 of 1 times: {says}" for says in CLOSED}


def said(asked: Setting, content: str, **more: Any) -> str:
    """What comes of a conversation that is replayed."""
    body = {
        "messages": [{"role": "user", "content": content}],
        "chat_template_kwargs": {"enable_thinking": True},
        "temperature": 0,
        "max_tokens": 55,
        **more,
    }
    (outcome,) = run(replace(asked, conversation=body), ()).outcomes
    return outcome.says
