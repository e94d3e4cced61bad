"""What is recorded of pull requests, as signals."""

from __future__ import annotations

from dataclasses import replace

import pytest

from patchq.judge import pulls
from patchq.judge.model import FileSeen, Observation
from patchq.judge.verdict import judge
from patchq.upstream.pulls import Pull

OPEN = Pull("acme/engine", 7, title="Knobs", state="open", base="main", head_sha="b" * 40)
PINNED = "a" * 40
REFRESH = " `patchq pr refresh acme/engine#7` shows how"
CLEAN = FileSeen(b"a.py", b"a.py", "clean", atoms=1, lines=4)
TORN = replace(CLEAN, merge="conflict", kind="content", found=3, wins_empty=True)


@pytest.mark.parametrize(
    ("pull", "signal", "says", "words"),
    [
        (
            replace(OPEN, state="merged", merge_sha="c" * 40, merged_at="2026-10-01T10:00:00Z"),
            "pull-merged",
            "landed",
            "acme/engine#7 was merged on 2026-10-01 as cccccccccc",
        ),
        (
            replace(OPEN, state="closed", closed_at="2026-10-01T10:00:00Z", closed_by="#9"),
            "pull-closed",
            "unclear",
            "acme/engine#7 was closed unmerged on 2026-10-01 by #9",
        ),
        (
            replace(OPEN, state="merged", reverted_by=(8, 9)),
            "pull-reverted",
            "needed",
            "acme/engine#7 was taken back by #8, #9",
        ),
        (
            replace(OPEN, state="closed", replaced_by=(8,)),
            "pull-replaced",
            "unclear",
            "acme/engine#7 was replaced by #8",
        ),
        (
            replace(OPEN, former_bases=("dev",)),
            "pull-base",
            "unclear",
            "acme/engine#7 asks for main now, not for dev any more",
        ),
        (
            replace(OPEN, forced_at="2026-10-01T10:00:00Z"),
            "pull-head",
            "needed",
            f"the head of acme/engine#7 moved from {'a' * 10} to {'b' * 10} (forced):{REFRESH}",
        ),
    ],
)
def test_signals(pull: Pull, signal: str, says: str, words: str) -> None:
    found = {each.signal: each for each in pulls.signals([(pull, PINNED)])}
    assert (found[signal].says, found[signal].detail) == (says, words)


def test_nothing_new_says_nothing() -> None:
    assert pulls.signals([(OPEN, "b" * 40), (OPEN, "")]) == ()


def test_the_recorded_pin_counts_where_the_patch_has_none() -> None:
    assert [s.signal for s in pulls.signals([(replace(OPEN, pinned=PINNED), "")])] == ["pull-head"]


def test_an_updated_request() -> None:
    moved = pulls.signals([(OPEN, PINNED)])
    found = judge(Observation((CLEAN,), extra=moved))
    assert (found.verdict, found.action) == ("updated", "keep")


def test_merged_tips_the_scales_but_does_not_drop_alone() -> None:
    merged = pulls.signals([(replace(OPEN, state="merged"), "")])
    assert judge(Observation((TORN,))).action == "ask"
    assert judge(Observation((TORN,), extra=merged)).verdict == "landed-with-changes"
    assert judge(Observation((CLEAN,), extra=merged)).action == "keep"
