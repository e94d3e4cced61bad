"""From verdicts to files: pure."""

from __future__ import annotations

import pytest

from patchq.carry import plan
from patchq.carry.fold import Carried
from patchq.judge.model import Action, Judgement, Signal
from patchq.queue import series as serieses
from patchq.queue.patch import Patch
from patchq.queue.series import Line, Series
from tests.support.kit import made

DIFF = b"diff --git a/a b/a\n"


def carried(patch: Patch, action: Action) -> Carried:
    return Carried(patch, "clean", Judgement("needed", action, ()), "before", "after")


@pytest.fixture
def patches() -> list[Patch]:
    return [made(n, name, DIFF) for n, name in enumerate(("one", "two", "three", "four"), 1)]


@pytest.fixture
def before(patches: list[Patch]) -> Series:
    one, two, three, four = patches
    return Series(
        (
            Line("comment", "# ours"),
            Line("patch", f"{one.file} # why", one),
            serieses.held_line(two, "later"),
            Line("patch", three.file, three),
            Line("comment", ""),
            Line("patch", four.file, four),
        ),
        ("0000-old.patch",),
    )


def test_next_series(before: Series, patches: list[Patch]) -> None:
    one, two, three, four = patches
    rewritten = three.with_diff(DIFF + b"more\n")
    after = plan.next_series(
        before,
        [carried(one, "drop"), carried(three, "shrink"), carried(four, "keep")],
        {"three": rewritten, "four": four},
    )
    assert [line.text for line in after.lines] == [
        "# ours",
        "# held 0002-two.patch: later",
        "0003-three.patch",
        "",
        "0004-four.patch",
    ]
    assert after.applied == (rewritten, four)
    assert after.held == {"two": "later"}
    assert after.all[0] is two
    assert after.retired == ("0000-old.patch", "0001-one.patch")
    assert after.next_number == 5


def test_what_is_kept_keeps_its_line(before: Series, patches: list[Patch]) -> None:
    kept = {patch.name: patch for patch in patches}
    after = plan.next_series(before, [carried(p, "keep") for p in patches if p.name != "two"], kept)
    assert after == before
    assert plan.changes("series", before, after, {}) == {}


def test_changes(before: Series, patches: list[Patch]) -> None:
    one, _, three, four = patches
    rewritten = three.with_diff(DIFF + b"more\n")
    after = plan.next_series(
        before,
        [carried(one, "drop"), carried(three, "keep"), carried(four, "keep")],
        {"three": rewritten, "four": four},
    )
    found = plan.changes("series/x", before, after, {one.file: b"retired"})
    assert found == {
        "series/x/series": after.files()["series"],
        "series/x/0003-three.patch": rewritten.text,
        "series/x/0001-one.patch": None,
        "series/x/retired/0001-one.patch": b"retired",
    }


def test_a_retired_patch_says_why(patches: list[Patch]) -> None:
    evidence = (Signal("merge", "landed", "it is there"), Signal("lines", "landed", "4 of\n4"))
    text = plan.retired_text(patches[0], Judgement("landed", "drop", evidence), "0.30.0")
    assert text.endswith(b"\n---\n" + DIFF)
    head = text.decode().split("\n\n")[0].split("\n")
    assert head[-3:] == [
        "Patchq-Dropped: landed in 0.30.0",
        "Patchq-Evidence: merge: it is there",
        "Patchq-Evidence: lines: 4 of 4",
    ]
