"""A night on a terminal and as JSON; what strangers wrote in it stays text."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from patchq.nightly.alarm import Alarmed
from patchq.nightly.form import read
from patchq.nightly.model import Culprit, Fault, Night, Stage, Told
from patchq.nightly.run import Plan, Ran
from patchq.nightly.settings import Settings
from patchq.nightly.stages import Bench, plan
from patchq.render import nightly
from patchq.render.jsons import dump

AT = "2026-12-01T01:23:45+00:00"
NIGHT = Night(
    "2026-12-01",
    "demo",
    "red",
    AT,
    AT,
    "a" * 40,
    stages=(
        Stage("sync", "done", AT, 12.3, "2 patches stand on v2; nothing moved", 0),
        Stage("smoke", "failed", AT, 3723.0, "failed: [bold]blocks[/bold] \x1b[31m", 5),
        Stage("bench", "left out", AT, 0.0, "smoke did not come through"),
    ),
    fault=Fault(
        "smoke",
        "blocks fails: it spins",
        (),
        ("patchq smoke --only blocks",),
        (Culprit("patch", "stays", "[link=x]Stays", None, 0.994),),
    ),
    told=Told(says=("issue #7 was opened",)),
)


def drawn(drawing: object) -> str:
    out = io.StringIO()
    Console(file=out, width=120, color_system=None).print(drawing)
    return out.getvalue()


def test_a_red_night_says_what_whose_and_how_to_see_it() -> None:
    text = drawn(nightly.drawn(Ran(NIGHT, Path("/nights/2026-12-01"), resumed=True)))
    assert text.splitlines()[0] == "night 2026-12-01 of demo, from aaaaaaaaaaaa, gone on with"
    for part in (
        "sync   done          12.3 s",
        "1 h 02 min",
        "red: something is wrong",
        "smoke: blocks fails: it spins",
        "patch stays (99% sure): [link=x]Stays",
        "$ patchq smoke --only blocks",
        "issue #7 was opened",
        "its records: /nights/2026-12-01",
    ):
        assert part in text
    assert "[bold]blocks[/bold]" in text
    assert "\x1b" not in text


@pytest.mark.parametrize("state", ["green", "quiet", "asks", "red", "incomplete"])
def test_every_end_has_words(state: str) -> None:
    ran = Ran(replace(NIGHT, state=state), Path("/n"))  # type: ignore[arg-type]
    assert f"\n{state}: " in drawn(nightly.drawn(ran))
    assert ran.exit_code == {"green": 0, "quiet": 0, "asks": 4, "red": 5, "incomplete": 6}[state]


def test_the_object_is_the_night_and_where_it_lies() -> None:
    value = nightly.as_json(Ran(NIGHT, Path("/nights/1")))
    assert (value["schema"], value["folder"], value["resumed"]) == (
        "patchq.night/1",
        "/nights/1",
        False,
    )
    assert read(dump(value).encode()) == NIGHT


def test_a_plan_names_every_command() -> None:
    made = plan(Settings(), "demo", Path("/n"), Bench())
    value = Plan("demo", "a" * 40, Path("/nights"), made)
    assert nightly.plan_json(value)["stages"][1]["commands"][0][:2] == ["patchq", "build"]
    text = drawn(nightly.planned(value))
    assert "gate: patchq gate --html /n/gate.html --json" in text
    assert "bench: nothing" in drawn(
        nightly.planned(replace(value, stages=plan(Settings(), "demo", Path("/n"), None)))
    )


def test_an_alarm_says_how_old_the_last_night_is() -> None:
    found = Alarmed(True, "2026-11-28", 70.26, 9, ("alarm #9 was raised",))
    assert nightly.alarm_json("demo", found) == {
        "schema": "patchq.night-alarm/1",
        "queue": "demo",
        "stale": True,
        "last": "2026-11-28",
        "hours": 70.3,
        "issue": 9,
        "says": ["alarm #9 was raised"],
    }
    text = drawn(nightly.alarmed("demo", found))
    assert "no night came to an end for too long" in text
    assert "alarm #9 was raised" in text


def test_a_telling_says_what_was_done() -> None:
    done = Told(3, "b" * 40, None, ("pull request #3 was opened",))
    assert nightly.told_json(NIGHT, done)["pushed"] == "b" * 40
    assert "pull request #3 was opened" in drawn(nightly.told(NIGHT, done))
    assert "there was nothing to tell" in drawn(nightly.told(NIGHT, Told()))
