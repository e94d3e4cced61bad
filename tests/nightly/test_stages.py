"""Which commands a night runs, and what their ends mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from patchq.nightly import stages
from patchq.nightly.model import NAMES, Stage
from patchq.nightly.settings import Settings
from patchq.nightly.stages import Bench
from patchq.nightly.step import Ended

SETTINGS = Settings(onto="0.32.0", target="cpu", cluster="pair", profile="tiny")
ERROR = {"schema": "patchq.error/1", "message": "it is broken", "hint": "mend it"}


def typed(command: stages.Command) -> str:
    return " ".join(command.args)


def test_the_commands_are_those_that_a_person_types() -> None:
    folder = Path("/nights/1")
    plan = stages.plan(SETTINGS, "demo", folder, Bench((1024, 8192), 8))
    assert [[typed(each) for each in commands] for commands in plan.values()] == [
        [
            "sync --onto 0.32.0 --commit --markdown /nights/1/sync.md --queue demo --json",
            "lock --queue demo --json",
        ],
        ["build --target cpu --cluster pair --queue demo --json"],
        ["cluster deploy pair --json", "cluster start pair --profile tiny --json"],
        ["smoke --cluster pair --profile tiny --json"],
        ["bench --cluster pair --profile tiny --context 1024 --context 8192 --rounds 8 --json"],
        ["gate --html /nights/1/gate.html --json"],
    ]
    assert tuple(plan) == NAMES[:-1], "no release unless the settings say so"


def test_where_a_release_was_measured_the_night_is_compared_with_it() -> None:
    asked = Bench((1024,), 8, Path("/kept/bench.json"))
    assert typed(stages.bench(SETTINGS, asked)) == (
        "compare /kept/bench.json --cluster pair --profile tiny --json"
    )


def test_only_what_asks_the_forge_gets_tokens() -> None:
    plan = stages.plan(SETTINGS, "demo", Path(), Bench())
    with_tokens = [each.name for commands in plan.values() for each in commands if each.tokens]
    assert with_tokens == ["sync"]
    assert stages.publish(3).tokens
    assert not stages.bisect(SETTINGS, "demo", "a", "b", "patchq smoke").tokens


def end(command: str, code: int, value: dict[str, Any], *, late: bool = False) -> tuple[str, str]:
    return stages.meaning(command, Ended(code, 1.0, late), value, 90 * 60)


@pytest.mark.parametrize(
    ("command", "code", "value", "state", "says"),
    [
        ("sync", 0, {"changed": False, "base": {"to": "2"}}, "done", "nothing moved"),
        ("sync", 4, {"patches": [{"name": "x", "action": "ask"}]}, "asks", "x"),
        (
            "sync",
            5,
            {"proof": {"checks": [{"name": "python", "ok": False, "detail": "no"}]}},
            "failed",
            "python: no",
        ),
        ("sync", 6, {"patches": []}, "unreached", "upstream"),
        ("sync", 1, ERROR, "failed", "it is broken"),
        ("sync", 6, ERROR, "unreached", "it is broken"),
        ("build", 1, ERROR, "failed", "it is broken"),
        ("build", -9, {}, "failed", "SIGKILL"),
        ("build", 1, ERROR | {"message": "No space left on device"}, "unreached", "space"),
        ("deploy", 1, ERROR | {"message": "spark-a is in use: `x` of y"}, "unreached", "in use"),
        (
            "start",
            1,
            ERROR | {"message": "rank 0 runs on spark-a since noon, started by ada@desk"},
            "unreached",
            "started by ada",
        ),
        (
            "start",
            6,
            {"failure": {"says": "rank 1 on b ended with 1", "lines": ["KeyError"]}},
            "failed",
            "rank 1",
        ),
        (
            "start",
            6,
            {"failure": {"says": "tiny did not serve within 60 s", "lines": []}},
            "failed",
            "did not serve",
        ),
        (
            "start",
            6,
            {"failure": {"says": "spark-b was not reached", "lines": []}},
            "unreached",
            "spark-b",
        ),
        ("smoke", 5, {"probes": [{"name": "cache", "state": "failed"}]}, "failed", "cache"),
        ("smoke", 6, {"probes": [{"name": "cache", "state": "not run"}]}, "unreached", "cache"),
        ("compare", 5, {"verdict": "worse"}, "failed", "worse"),
        ("compare", 6, {"verdict": "inconclusive"}, "unreached", "inconclusive"),
        (
            "gate",
            5,
            {"findings": [{"rule": "smoke.age", "ok": False, "says": "too old"}]},
            "failed",
            "smoke.age: too old",
        ),
        ("gate", 3, ERROR, "failed", "it is broken"),
        ("bench", 130, {}, "failed", "130"),
    ],
)
def test_what_an_end_means(
    command: str, code: int, value: dict[str, Any], state: str, says: str
) -> None:
    found, sentence = end(command, code, value)
    assert (found, says in sentence) == (state, True), sentence


def test_what_took_too_long_is_late_whatever_it_said() -> None:
    assert end("smoke", 130, {}, late=True) == (
        "late",
        "smoke was not done after 90 minutes, and was ended",
    )


def stage(name: str, state: Any) -> Stage:
    return Stage(name, state, "2026-12-01T01:23:45+00:00", 1.0, "")


ALL = NAMES[:-1]


@pytest.mark.parametrize(
    ("states", "night"),
    [
        ("done done done done done done", "green"),
        ("done done done done left-out done", "green"),
        ("asks left-out left-out left-out left-out left-out", "asks"),
        ("failed left-out left-out left-out left-out left-out", "red"),
        ("done done unreached left-out left-out left-out", "incomplete"),
        ("done done done failed left-out left-out", "red"),
        ("done done done late left-out left-out", "red"),
        ("late left-out left-out left-out left-out left-out", "incomplete"),
        ("unreached done done done done done", "incomplete"),
        ("unreached done done failed left-out left-out", "red"),
        ("done done done done failed failed", "red"),
        ("done done done done unreached unreached", "incomplete"),
        ("done done done done done left-out", "incomplete"),
        ("done done", "incomplete"),
    ],
)
def test_how_a_night_ends(states: str, night: str) -> None:
    words = [each.replace("-", " ") for each in states.split()]
    found = [stage(name, word) for name, word in zip(ALL, words, strict=False)]
    assert stages.outcome(found, ALL) == night


def test_a_release_that_did_not_go_out_is_no_green_night() -> None:
    done = [stage(name, "done") for name in ALL]
    assert stages.outcome([*done, stage("release", "done")], NAMES) == "green"
    assert stages.outcome([*done, stage("release", "unreached")], NAMES) == "incomplete"


def test_which_stages_have_others_after_them_all_the_same() -> None:
    """What upstream did not say is no reason to leave the rest; a slow runner is told by the gate."""
    on = [
        (name, state)
        for name in NAMES
        for state in ("done", "failed", "asks", "unreached", "late")
        if stages.goes_on(stage(name, state)) and state != "done"
    ]
    assert on == [("sync", "unreached"), ("bench", "failed"), ("bench", "unreached")]


def test_requirements_are_locked_anew_where_the_lock_says_so() -> None:
    note = "upstream/requirements.cpu.lock is of other inputs"
    assert stages.needs_requirements({"notes": [note]}, "cpu")
    assert not stages.needs_requirements({"notes": [note]}, "spark")
    assert not stages.needs_requirements({}, "cpu")
