"""The alarm: raised once when no night has come to an end for too long, and closed by a young one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from patchq.errors import Incomplete, PatchqError
from patchq.forge.errors import ForgeError
from patchq.nightly.alarm import Alarmed, alarm, overdue
from patchq.nightly.people import Overdue
from patchq.render.night_words import WORDS
from tests.nightly.booth import QUICK, SETTINGS, Booth
from tests.nightly.tales import SPINS, night
from tests.support.forge.fixtures import forge, forge_server  # noqa: F401
from tests.support.forge.server import Forge
from tests.support.history import git

ENDED = datetime(2026, 12, 1, 5, tzinfo=UTC)
"""When the night of the first ended."""
BROKE = replace(SPINS, stage="deploy", cause="node2 is not reached")


def hours(count: float) -> datetime:
    return ENDED + timedelta(hours=count)


# When it is due


def test_how_old_the_last_night_is() -> None:
    assert overdue("vllm", [], hours(0), 36) is None
    nights = [night("2026-11-30"), night()]
    assert overdue("vllm", nights, hours(36), 36) == Overdue("vllm", 36, 36, nights[1])


@pytest.mark.parametrize("state", ["green", "quiet", "asks", "red"])
def test_any_verdict_is_an_end(state: str) -> None:
    found = overdue("vllm", [night(state=state)], hours(1), 36)
    assert found and found.hours == 1


def test_nights_that_reach_nothing_are_no_end() -> None:
    """Each morning there is one more of them, and nobody would hear of it."""
    broke = night("2026-12-02", "incomplete", fault=BROKE)
    running = night("2026-12-03", "running", ended=None)
    found = overdue("vllm", [night(), broke, running], hours(50), 36)
    assert found == Overdue("vllm", 50, 36, night(), (broke, running))
    found = overdue("vllm", [broke], hours(44), 36)
    assert found == Overdue("vllm", 24, 36, None, (broke,)), "since the first began"


# Against the forge


@pytest.fixture
def booth(forge: Forge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Booth:  # noqa: F811
    return Booth(forge, tmp_path, monkeypatch)


def look(booth: Booth, after: float, root: Path | None = None) -> Alarmed:
    return alarm(root or booth.root, SETTINGS, hours(after), WORDS, patience=QUICK)


def test_raised_once_and_closed(booth: Booth) -> None:
    booth.add(night())
    booth.writes()
    elsewhere = booth.clone("elsewhere")
    assert look(booth, 35, elsewhere) == Alarmed(
        *(False, "2026-12-01", 35, None),
        ("the last night that came to an end is 35 hours old",),
    )
    assert booth.writes() == []
    found = look(booth, 37, elsewhere)
    assert (found.stale, found.issue, found.says[1]) == (True, 1, "alarm #1 was raised")
    assert booth.issue.title == "Nightly: no night of vllm has come to an end since 2026-12-01"
    assert booth.issue.labels == ["patchq-nightly"] and booth.writes() == ["POST /issues"]
    for _ in range(3):
        assert look(booth, 40, elsewhere).issue == 1
    assert booth.writes() == [], "an hour more is no news"

    booth.add(night("2026-12-02", "incomplete", fault=BROKE))
    look(booth, 41, elsewhere)
    assert booth.writes() == ["push", "PATCH /issues/1"]
    assert "`2026-12-02`: incomplete: node2 is not reached" in booth.issue.body

    booth.add(night("2026-12-03", "red"))
    found = look(booth, 49, elsewhere)
    assert (found.stale, found.issue, booth.issue.state) == (False, None, "closed")
    assert [each.body for each in booth.issue.comments] == [
        "Night `2026-12-03` has come to an end: red."
    ]
    booth.writes()
    look(booth, 50, elsewhere)
    assert booth.writes() == []
    assert look(booth, 100, elsewhere).issue == 2, "another time is another alarm"


def test_it_is_not_the_issue_of_red_nights(booth: Booth) -> None:
    booth.tell(booth.night("2026-12-01", "red"))
    booth.issue.closes()
    booth.nights, alarmed = [], look(booth, 60).issue
    assert alarmed == 2
    told = booth.tell(booth.night("2026-12-03", "red", lock="2" * 64))
    assert told.issue == 3 and "no night" in booth.repo.issues[2].title
    look(booth, 61)
    assert [each.state for each in booth.repo.issues.values()] == ["closed", "closed", "open"]


def test_closed_by_a_person_it_is_not_raised_for_the_same_night(booth: Booth) -> None:
    booth.add(night())
    look(booth, 40)
    booth.issue.closes()
    found = look(booth, 50)
    assert found.stale and found.issue is None and booth.issue.state == "closed"
    assert found.says[1] == "alarm #1 was closed by hand: it is not raised again"


def test_words_beside_ours_stay(booth: Booth) -> None:
    booth.add(night())
    look(booth, 40)
    booth.issue.says(f"{booth.issue.body}\n\nI am on holiday.")
    booth.add(night("2026-12-02", "incomplete"))
    look(booth, 41)
    assert "`2026-12-02`" in booth.issue.body
    assert booth.issue.body.endswith("\n\nI am on holiday.")


def test_without_any_night_nothing_is_overdue(booth: Booth) -> None:
    found = look(booth, 1000)
    assert found == Alarmed(
        *(False, None, None, None), ("no night of vllm is known yet: nothing can be overdue",)
    )


def test_a_marker_of_a_stranger_is_not_trusted(booth: Booth) -> None:
    theirs = booth.repo.issue("Mine", body="<!-- patchq:alarm vllm -->")
    booth.add(night())
    assert look(booth, 40).issue == 2
    look(booth, 30)
    assert theirs.state == "open"


def test_a_token_that_may_set_no_label_raises_no_heap_of_alarms(
    booth: Booth, monkeypatch: pytest.MonkeyPatch
) -> None:
    booth.add(night())
    booth.forge.others.add("ghp_visitor")
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_visitor")
    with pytest.raises(PatchqError, match="may not set the label patchq-nightly"):
        look(booth, 40)
    assert booth.issue.state == "closed"


def test_what_is_not_known_raises_no_alarm(booth: Booth, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nights that were seen last may be old; that says nothing of the last night."""
    booth.add(night())
    git(booth.root, "fetch", "-q", "origin")
    booth.forge.fails("git", 503, b"no", times=9)
    with pytest.raises(Incomplete):
        look(booth, 60)
    booth.forge.faults.clear()
    booth.forge.fails("rest", 503, {"message": "no"}, times=9)
    with pytest.raises(ForgeError):
        look(booth, 60)
    booth.forge.faults.clear()
    monkeypatch.delenv("GITHUB_TOKEN")
    with pytest.raises(PatchqError, match="no token is set") as caught:
        look(booth, 60)
    assert caught.value.exit_code == 1 and not booth.repo.issues
