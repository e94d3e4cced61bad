"""The story that a range of commits tells of a patch: the last chapter counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.gitstore.log import Commit, Lines
from patchq.gitstore.store import Change as Changed
from patchq.judge.change import Change, change, held, tells, together
from patchq.judge.commits import Told, relevant, title
from patchq.judge.history import Commits, look
from patchq.judge.model import Past
from patchq.queue.diff import parse

LINES = [b"    knob_%d = read(setting)" % n for n in range(10)]
PATCH = Change(dict.fromkeys(LINES, 1), {b"    knob = None": 1}, frozenset({b"a.py"}))
NUMBERED = replace(PATCH, numbers=frozenset({1}))


class Upstream:
    """Commits one after the other, and what each does to the patch's lines."""

    def __init__(self) -> None:
        self.told: list[Told] = []
        self.lines: dict[str, Lines] = {}

    def commit(
        self, subject: str, added: Sequence[bytes] = (), removed: Sequence[bytes] = (), *, other: int = 0,
        body: str = "",
    ) -> str:  # fmt: skip
        oid = f"{len(self.told) + 1:040x}"
        changes = (Changed("M", b"a.py", b"a.py", "100644", "100644", "0" * 40, "1" * 40),)
        self.told.append(
            Told(Commit(oid, ("f" * 40,), "Ada", "2026-10-01", subject, body, changes))
        )
        size = len(added) + len(removed) + other
        self.lines[oid] = Lines(Counter(added), Counter(removed), size)
        return oid

    def brings(self, subject: str, count: int = 10, **more: int) -> str:
        return self.commit(subject, LINES[:count], [b"    knob = None"][: count // 10], **more)

    def takes(self, subject: str, count: int = 10, body: str = "", other: int = 0) -> str:
        back = [b"    knob = None"][: count // 10]
        return self.commit(subject, back, LINES[:count], body=body, other=other)

    def past(self, patch: Change = PATCH) -> Past | None:
        return look(patch, Commits(self.told, self.lines))


@pytest.fixture
def up() -> Upstream:
    return Upstream()


def test_nothing_is_said_of_a_stranger(up: Upstream) -> None:
    up.commit("Other (#7)", [b"something = else"])
    up.brings("A part", 4)
    assert up.past() is None


@pytest.mark.parametrize(("count", "share"), [(10, 1.0), (9, 9 / 11), (6, 6 / 11)])
def test_landed_by_its_lines(up: Upstream, count: int, share: float) -> None:
    oid = up.brings("Something (#7)", count)
    past = up.past()
    assert past is not None
    assert (past.landings[0].commit, past.landings[0].pr, past.named) == (oid, "#7", "")
    assert past.share == pytest.approx(share)
    assert past.paths == {b"a.py"}


def test_the_best_of_two(up: Upstream) -> None:
    up.brings("A part", 6)
    whole = up.brings("The whole", 10)
    up.brings("A part again", 6)
    past = up.past()
    assert past is not None and past.landings[0].commit == whole


def test_the_one_that_has_its_number(up: Upstream) -> None:
    up.brings("A copy (#9)", 10)
    named = up.brings("Itself (#1)", 3)
    past = up.past(NUMBERED)
    assert past is not None
    assert (past.landings[0].commit, past.named, past.whole) == (named, "#1", True)


@pytest.mark.parametrize(
    ("subject", "body"),
    [
        ('Revert "Knobs (#1)" (#2)', ""),
        ('Revert "Knobs"', ""),
        ("Off again", "This reverts commit 000000000000000000000000000000000000000a."),
        ("revert: #1 for now (#2)", ""),
        ("Off again", "Reverts acme/engine#1"),
        ("Nothing said", ""),
    ],
    ids=["quoted", "title", "sha", "number", "body", "lines alone"],
)
def test_reverted(up: Upstream, subject: str, body: str) -> None:
    for n in range(9):
        up.commit(f"Noise {n}")
    landed = up.brings("Knobs (#1)")
    back = up.takes(subject, body=body)
    past = up.past()
    assert past is not None and past.reverted is not None
    assert (past.landings[0].commit, past.reverted.commit) == (landed, back)


def test_rewritten_is_not_reverted(up: Upstream) -> None:
    """The lines go with much else, and no word says revert."""
    up.brings("Knobs (#1)")
    up.takes("Rewrite the engine (#2)", other=200)
    past = up.past()
    assert past is not None
    assert (past.reverted, past.stands, past.rewritten) == (None, 0.0, True)


@pytest.mark.parametrize("again", ["Knobs, better (#5)", 'Reapply "Knobs (#1)" (#5)', "Knobs"])
def test_landed_again(up: Upstream, again: str) -> None:
    up.brings("Knobs (#1)")
    up.takes('Revert "Knobs (#1)" (#2)')
    last = up.brings(again)
    past = up.past(NUMBERED)
    assert past is not None
    assert (past.landings[0].commit, past.reverted) == (last, None)


def test_a_part_of_it_is_not_landed_again(up: Upstream) -> None:
    up.brings("Knobs (#1)")
    up.takes('Revert "Knobs (#1)" (#2)')
    up.brings("Some knobs (#5)", 7)
    past = up.past(NUMBERED)
    assert past is not None and past.reverted is not None


def test_the_chain_is_followed(up: Upstream) -> None:
    up.brings("Knobs (#1)")
    up.takes('Revert "Knobs (#1)" (#2)')
    up.brings('Revert "Revert "Knobs (#1)" (#2)" (#3)')
    assert (found := up.past(NUMBERED)) is not None and found.reverted is None
    last = up.takes("Revert #3 (#4)")
    assert (found := up.past(NUMBERED)) is not None and found.reverted is not None
    assert found.reverted.commit == last


def test_a_revert_of_another_part(up: Upstream) -> None:
    """The words name its number, but none of its lines goes."""
    up.brings("Knobs (#1)")
    up.commit("Revert the docs of #1 (#2)", [], [b"documented = knobs"])
    past = up.past(NUMBERED)
    assert past is not None and past.reverted is None


def test_a_patch_that_is_a_revert(up: Upstream) -> None:
    """It has landed when the revert is there, and is no landing of what it takes back."""
    back = Change(PATCH.removed, PATCH.added, PATCH.paths, frozenset({2}))
    up.brings("Knobs (#1)")
    assert up.past(back) is None
    oid = up.takes('Revert "Knobs (#1)" (#2)')
    past = up.past(back)
    assert past is not None and past.reverted is None
    assert past.landings[0].commit == oid


def test_a_pick_has_another_number(up: Upstream) -> None:
    picked = up.brings("Knobs (#1) (#8)", 4)
    past = up.past(NUMBERED)
    assert past is not None
    assert (past.landings[0].commit, past.named) == (picked, "picks #1")


def test_the_commit_that_the_patch_names(up: Upstream) -> None:
    oid = up.brings("Knobs", 2)
    past = up.past(replace(PATCH, ids=(oid[:40],)))
    assert past is not None and past.named == "the commit that the patch names"


def test_the_same_title_needs_fewer_lines(up: Upstream) -> None:
    up.brings("[Core] Read the knobs (#1)", 4)
    assert up.past() is None
    past = up.past(replace(PATCH, title=title("core: Read  the knobs")))
    assert past is not None and past.named == "the same title"


def test_a_number_of_the_subject_needs_lines(up: Upstream) -> None:
    """It may be a fork's: the same number of upstream's is something else."""
    hinted = replace(PATCH, hints=frozenset({1}))
    up.brings("Something else in the file (#1)", 1)
    assert up.past(hinted) is None
    up.brings("Knobs (#1)", 4)
    past = up.past(hinted)
    assert past is not None and past.named == "#1"


def test_a_bundle_needs_all_its_numbers(up: Upstream) -> None:
    both = replace(PATCH, numbers=frozenset({1, 2}))
    up.brings("One (#1)", 10)
    past = up.past(both)
    assert past is not None and not past.whole
    up.commit("Two (#2)", [b"more = than(that)"])
    past = up.past(both)
    assert past is not None and past.whole
    assert [landing.pr for landing in past.landings] == ["#1", "#2"]


def test_patches_of_one_request_together() -> None:
    first = Change({b"one_line_here": 1, b"draft_of_two": 1}, {}, frozenset({b"a"}), frozenset({1}))
    second = Change({b"two_line_here": 1}, {b"draft_of_two": 1}, frozenset({b"b"}), frozenset({1}))
    both = together([first, second])
    assert both.added == {b"one_line_here": 1, b"two_line_here": 1}
    assert (both.removed, both.paths) == ({}, {b"a", b"b"})


@given(st.lists(st.sampled_from(["in", "out", "noise"]), max_size=12))
def test_the_last_chapter_counts(chapters: list[str]) -> None:
    up = Upstream()
    stands: bool | None = None
    for chapter in chapters:
        if chapter == "in":
            up.brings("Knobs (#1)")
            stands = True
        elif chapter == "out":
            up.takes("Revert #1 (#2)")
            stands = None if stands is None else False
        else:
            up.commit("Noise (#3)", [b"noise = everywhere"])
    past = up.past(NUMBERED)
    assert (past is None) == (stands is None)
    assert past is None or (past.reverted is None) == stands


def test_lines_of_a_patch() -> None:
    diff = b"""diff --git a/a.py b/a.py
index %b..%b 100644
--- a/a.py
+++ b/a.py
@@ -1,4 +1,5 @@
 context
-moved_line = 1
+else:
+    new_line = 2  \n+moved_line = 1
+
-old_line = 0
 context
""" % (b"0" * 40, b"1" * 40)
    found = change(parse(diff, "x"))
    assert found.added == {b"else:": 1, b"    new_line = 2": 1}
    assert found.removed == {b"old_line = 0": 1}
    assert held(parse(diff, "x"), [diff]) == {b"a.py": 1.0}
    assert held(parse(diff, "x"), [diff.replace(b"new_line", b"x")]) == {
        b"a.py": pytest.approx(4 / 5)
    }
    assert held(parse(diff, "x"), []) == {b"a.py": 0.0}


def test_telling_lines() -> None:
    assert [line for line in (b"else:", b"}", b"  return x", "日本語".encode()) if tells(line)] == [
        b"  return x",
        "日本語".encode(),
    ]


def test_which_commits_are_read() -> None:
    up = Upstream()
    up.commit("Touches a.py")
    moved = Commit(
        "b" * 40,
        (),
        "Ada",
        "",
        "Elsewhere",
        "",
        (replace(up.told[0].commit.changes[0], path=b"x/knobs.py"),),
    )
    other = replace(moved, id="c" * 40, changes=(replace(moved.changes[0], path=b"other.py"),))
    named = replace(other, id="d" * 40, subject="Knobs (#1)")
    revert = replace(other, id="e" * 40, subject="Revert it")
    commits = [up.told[0].commit, moved, other, named, revert]
    found = relevant(commits, {b"a.py", b"old/knobs.py"}, {1})
    assert [each.id[-1] for each in found] == ["1", "b", "d", "e"]
