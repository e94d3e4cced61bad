"""The series changes underneath: the tree goes along, or says what keeps it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.hand import Hand
from tests.support.history import git
from tests.support.inside import call


@pytest.fixture
def hand(tmp_path: Path) -> Hand:
    made = Hand(tmp_path)
    made.call("push", "3")
    return made


def test_a_command_that_changes_the_series_takes_the_tree_along(hand: Hand) -> None:
    said = hand.call("hold", "second", "--why", "later")
    assert "The working tree went along with the series: third is on top" in said.err
    assert not (hand.tree / "pkg").exists()
    hand.call("rename", "third", "tertius")
    assert hand.json("status")["work"]["top"] == "tertius"
    hand.call("delete", "tertius", "--why", "done")
    assert hand.json("status")["work"]["top"] == "first"
    hand.call("push", "-a")
    assert hand.files() == hand.judged()


def test_an_undo_and_git_are_seen_by_the_next_command(hand: Hand) -> None:
    hand.edit("b.txt", "line 20", "twenty")
    hand.call("refresh")
    hand.call("undo")
    assert hand.json("status")["work"]["behind"] is True
    assert "the series changed since" in hand.call("status").out
    said = hand.json("push")
    assert said["notes"] and "went along" in said["notes"][0]
    assert hand.files() == hand.judged()
    (hand.root / "series/series").write_text("0001-first.patch\n0003-third.patch\n")
    assert hand.json("pop")["top"] == "first"
    git(hand.root, "checkout", "-q", "--", "series")
    hand.call("push", "-a")
    assert hand.files() == hand.judged()


def test_a_sync_moves_the_tree_to_the_new_release(hand: Hand) -> None:
    hand.edit("same.txt", "line 1\n", "mine\n")
    hand.call("sync", "--onto", "v2")
    hand.call("goto", "third")
    mine = hand.files().pop(b"same.txt")
    assert mine.data.startswith(b"mine\n")
    assert b"\n25\n" in hand.files()[b"b.txt"].data
    git(hand.tree, "checkout", "-q", "--", "same.txt")
    hand.call("push", "-a")
    assert hand.files() == hand.judged("v2")


def test_edits_in_the_way_keep_the_tree_where_it_was(hand: Hand) -> None:
    hand.edit("pkg/mod.py", "x = 1", "x = 2")
    stood = hand.files()
    said = hand.call("hold", "second", "--why", "later")
    assert "pkg/mod.py in" in said.err and "stays as it was" in said.err
    assert hand.files() == stood
    said = hand.call("push", code=1)
    assert "the series changed, and pkg/mod.py" in said.err and "git stash" in said.err
    assert hand.files() == stood
    # As it tells.
    git(hand.tree, "stash", "-q")
    hand.call("push")
    assert not (hand.tree / "pkg").exists()
    hand.call("unhold", "second")
    hand.call("goto", "second")
    git(hand.tree, "stash", "pop", "-q")
    assert (hand.tree / "pkg/mod.py").read_text() == "x = 2\n"
    hand.call("refresh")
    hand.call("push", "-a")
    assert hand.files() == hand.judged()


def test_a_conflict_is_open_while_the_series_changes(hand: Hand) -> None:
    hand.call("goto", "first")
    hand.edit("a.txt", "line 4\n", "four of first\n")
    hand.call("refresh")
    hand.call("push", code=4)
    hand.edit("a.txt", "four of first", "half resolved")
    stood = hand.files()
    second = hand.patch("second")
    second.write_bytes(second.read_bytes().replace(b"x = 1", b"x = 3"))
    said = hand.call("push", code=1)
    assert "the series changed while the conflict of second was open" in said.err
    assert hand.files() == stood
    assert "half resolved" not in hand.call("pop").out
    assert hand.json("status")["work"]["pending"] is None
    assert hand.json("push", code=4)["pending"] == "second"
    # With nothing resolved yet it is laid out anew.
    second.write_bytes(second.read_bytes().replace(b"x = 3", b"x = 4"))
    assert "went along" in hand.json("push", code=4)["notes"][0]
    assert (hand.tree / "pkg/mod.py").read_text() == "x = 4\n"


def test_a_patch_that_does_not_apply_any_more_is_where_it_stops(hand: Hand) -> None:
    """As after a bad edit by hand: below it the tree follows."""
    third = hand.patch("third")
    third.write_bytes(third.read_bytes().replace(b"-line 9", b"-line nine"))
    said = hand.call("push", code=1)
    assert "0003-third.patch does not apply on top of second" in said.err
    assert hand.json("status")["work"]["top"] == "second"


def test_a_linked_worktree_has_the_same_tree_for_its_own_series(hand: Hand) -> None:
    """One tree a queue: whoever works in it takes it along to their series."""
    linked = hand.folder / "linked"
    git(hand.root, "worktree", "add", "-q", str(linked), "-b", "other")
    (linked / "series/series").write_text("0003-third.patch\n")
    assert call(linked, "push", "-a", "--json").json["top"] == "third"
    assert not (hand.tree / "pkg").exists()
    inside = call(hand.tree, "status", "--json").json
    assert inside["applied"] == 1, "from inside the tree it belongs to who came last"
    hand.call("push", "-a")
    assert hand.files() == hand.judged()


def test_two_queues_have_two_trees(hand: Hand) -> None:
    upstream = str(hand.upstream.path)
    text = (hand.root / "upstream/demo.toml").read_text()
    (hand.root / "upstream/demo.toml").write_text(text)
    hand.call("init", "other", "--git", upstream, "--base", "v2")
    hand.call("new", "mine", "--queue", "other")
    assert hand.json("status", "--queue", "demo")["work"]["top"] == "third"
    other = hand.root / ".git/patchq/work/other/tree"
    assert b"25\n" in (other / "b.txt").read_bytes()
    shutil.rmtree(hand.tree.parent)
    assert hand.json("status", "--queue", "demo")["work"] is None
    assert hand.json("status", "--queue", "other")["work"]["top"] == "mine"
