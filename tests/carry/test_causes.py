"""Which upstream commits made a patch conflict."""

from __future__ import annotations

import pytest

from patchq.carry import causes
from patchq.carry.causes import with_causes
from patchq.carry.fold import Carry, fold
from patchq.carry.ranges import Range
from patchq.judge.model import Cause
from tests.support.history import Commit, lines
from tests.support.kit import Kit

TEXT = lines(range(1, 61))


def noise(kit: Kit, count: int) -> Commit:
    """Commits that touch the file far from the patch."""
    for number in range(count):
        at = 40 + number % 20
        old = kit.history.tips["main"].tree[b"a.txt"].data.splitlines(keepends=True)[at]
        made = kit.history.commit(f"Noise (#{100 + number})")
        made.edit("a.txt", old, old.rstrip() + b"'\n")
    return made


def carried(kit: Kit, *refs: str, new: str = "v2") -> Carry:
    """The series of `refs` on `new`, with the causes of its conflicts."""
    old, target = kit.release(refs[0]), kit.release(new)
    carry = fold(kit.store, old, target, kit.series(*refs))
    return with_causes(kit.store, carry, Range(kit.store, old.commit, target.commit, new))


def found(carry: Carry, place: int = 0) -> dict[str, list[str]]:
    """The titles of the causes of each conflict of a patch, by path."""
    return {
        conflict.path.decode(): [cause.title for cause in conflict.causes]
        for conflict in carry.patches[place].judgement.conflicts
    }


@pytest.fixture
def kit(kit: Kit) -> Kit:
    kit.history.commit("Start").write("a.txt", TEXT).write("b.txt", TEXT).tag("v1")
    return kit


def test_one_commit_of_many(kit: Kit) -> None:
    noise(kit, 7)
    guilty = kit.history.commit("Change line 20 (#57477)").by(b"Gil Guilty")
    guilty.edit("a.txt", b"line 20\n", b"line 20, upstream's\n")
    noise(kit, 9).tag("v2")
    ours = kit.history.branch("ours", at="v1").commit("Ours")
    ours.edit("a.txt", b"line 20\n", b"line 20, ours\n")

    (conflict,) = carried(kit, "v1", "ours").patches[0].judgement.conflicts

    (cause,) = conflict.causes
    assert cause == Cause(
        kit.store.resolve("v2~9") or "", "#57477", cause.title, "Gil Guilty", cause.date
    )
    assert cause.told == f"{cause.commit[:10]} Change line 20 (#57477), by Gil Guilty, 2025-06-16"
    assert conflict.cause == cause


def test_the_first_of_several_that_change_the_line(kit: Kit) -> None:
    first = kit.history.commit("First").edit("a.txt", b"line 20\n", b"twenty\n")
    first.commit("Second").edit("a.txt", b"twenty\n", b"XX\n").tag("v2")
    kit.history.branch("ours", at="v1").commit("Ours").edit("a.txt", b"line 20\n", b"20!\n")

    assert found(carried(kit, "v1", "ours")) == {"a.txt": ["First"]}


def test_several_causes_are_all_named(kit: Kit) -> None:
    one = kit.history.commit("One").edit("a.txt", b"line 5\n", b"five\n")
    one.commit("Harmless").edit("a.txt", b"line 12\n", b"twelve\n")
    two = one.commit("Two").edit("a.txt", b"line 30\n", b"thirty\n")
    two.commit("Three").edit("b.txt", b"line 9\n", b"nine\n").tag("v2")
    ours = kit.history.branch("ours", at="v1").commit("Ours")
    ours.edit("a.txt", b"line 5\n", b"5!\n").edit("a.txt", b"line 30\n", b"30!\n")
    ours.edit("a.txt", b"line 20\n", b"20!\n").edit("b.txt", b"line 9\n", b"9!\n")

    assert found(carried(kit, "v1", "ours")) == {"a.txt": ["One", "Two"], "b.txt": ["Three"]}


def test_a_patch_that_builds_on_another(kit: Kit) -> None:
    """The second patch conflicts in a line that the first one made: upstream never had it."""
    kit.history.commit("Far").edit("a.txt", b"line 50\n", b"fifty\n")
    kit.history.commit("Near").edit("a.txt", b"line 22\n", b"twenty-two\n").tag("v2")
    first = kit.history.branch("one", at="v1").commit("One")
    first.edit("a.txt", b"line 20\n", b"line 20\nours\n")
    second = kit.history.branch("two", at="one").commit("Two")
    second.edit("a.txt", b"ours\nline 21\nline 22\n", b"ours, and more\nline 22!\n")

    carry = carried(kit, "v1", "one", "two")

    assert found(carry, 1) == {"a.txt": ["Near"]}


def test_deleted_upstream(kit: Kit) -> None:
    kit.history.commit("Edit").edit("a.txt", b"line 20\n", b"twenty\n")
    kit.history.commit("Remove it (#7)").delete("a.txt")
    kit.history.commit("More").edit("b.txt", b"line 50\n", b"fifty\n").tag("v2")
    kit.history.branch("ours", at="v1").commit("Ours").edit("a.txt", b"line 20\n", b"20!\n")

    assert found(carried(kit, "v1", "ours")) == {"a.txt": ["Remove it (#7)"]}


def test_both_added_it(kit: Kit) -> None:
    kit.history.commit("Add it").write("new.txt", b"theirs\n")
    kit.history.commit("More").write("new.txt", b"theirs, longer\n").tag("v2")
    kit.history.branch("ours", at="v1").commit("Ours").write("new.txt", b"ours\n")

    assert found(carried(kit, "v1", "ours")) == {"new.txt": ["Add it"]}


def test_a_folder_in_the_way(kit: Kit) -> None:
    kit.history.commit("Edit").edit("b.txt", b"line 50\n", b"fifty\n")
    kit.history.commit("Make it a folder").write("new/inner.txt", b"theirs\n").tag("v2")
    kit.history.branch("ours", at="v1").commit("Ours").write("new", b"ours\n")

    assert found(carried(kit, "v1", "ours")) == {"new": ["Make it a folder"]}


def test_inside_a_merged_branch(kit: Kit) -> None:
    """A merge without a number is not the answer: the commit that it brought is."""
    kit.history.commit("Main goes on").edit("b.txt", b"line 3\n", b"three\n")
    side = kit.history.branch("side", at="v1").commit("Side, harmless")
    side.edit("a.txt", b"line 50\n", b"fifty\n")
    side.commit("Side, guilty").edit("a.txt", b"line 20\n", b"twenty\n")
    side.commit("Side, more").edit("a.txt", b"line 40\n", b"forty\n")
    kit.history.branch("main").commit("Merge branch 'side'").merging("side").tag("v2")
    kit.history.branch("ours", at="v1").commit("Ours").edit("a.txt", b"line 20\n", b"20!\n")

    assert found(carried(kit, "v1", "ours")) == {"a.txt": ["Side, guilty"]}


def test_a_merged_pull_request_is_named_as_one(kit: Kit) -> None:
    kit.history.commit("Main goes on").edit("b.txt", b"line 3\n", b"three\n")
    side = kit.history.branch("side", at="v1").commit("Fix")
    side.edit("a.txt", b"line 20\n", b"twenty\n")
    both = kit.history.branch("main").commit("Merge pull request #12 from somebody/side")
    both.merging("side").tag("v2")
    kit.history.branch("ours", at="v1").commit("Ours").edit("a.txt", b"line 20\n", b"20!\n")

    (conflict,) = carried(kit, "v1", "ours").patches[0].judgement.conflicts

    assert [cause.pr for cause in conflict.causes] == ["#12"]


def test_a_path_that_upstream_moved(kit: Kit) -> None:
    kit.history.commit("Move").move("a.txt", "moved/a.txt")
    kit.history.commit("Guilty").edit("moved/a.txt", b"line 20\n", b"twenty\n")
    kit.history.commit("More").edit("moved/a.txt", b"line 50\n", b"fifty\n").tag("v2")
    kit.history.branch("ours", at="v1").commit("Ours").edit("a.txt", b"line 20\n", b"20!\n")

    assert found(carried(kit, "v1", "ours")) == {"a.txt": ["Guilty"]}


def test_few_merges_for_many_commits(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bisection: some sixty commits take a handful of merges."""
    tried = []
    merge = causes.merge
    monkeypatch.setattr(causes, "merge", lambda *args: tried.append(1) or merge(*args))
    noise(kit, 20)
    kit.history.commit("Guilty").edit("a.txt", b"line 20\n", b"twenty\n")
    for _ in range(2):
        noise(kit, 20)
    kit.history.tips["main"].tag("v2")
    kit.history.branch("ours", at="v1").commit("Ours").edit("a.txt", b"line 20\n", b"20!\n")

    assert found(carried(kit, "v1", "ours")) == {"a.txt": ["Guilty"]}
    assert len(tried) < 12
