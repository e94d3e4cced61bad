"""refresh: the edits go into a patch, the patches above are carried, nothing is lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.hand import Hand
from tests.support.history import Entry, git


@pytest.fixture
def hand(tmp_path: Path) -> Hand:
    made = Hand(tmp_path)
    made.call("push", "-a")
    return made


def test_the_top_takes_the_edits(hand: Hand) -> None:
    """Changed, new, removed, with another mode, ignored by git: all of them, and only once."""
    hand.edit("a.txt", "line 20", "twenty")
    (hand.tree / ".gitignore").write_text("*.log\n")
    (hand.tree / "run.log").write_bytes(b"\xff\r\n")
    (hand.tree / "same.txt").unlink()
    (hand.tree / "b.txt").chmod(0o755)
    stands = hand.files()
    said = hand.json("refresh")
    assert said["patches"] == [{"name": "fourth", "what": "refreshed"}]
    assert said["taken"] == [".gitignore", "a.txt", "b.txt", "run.log", "same.txt"]
    assert hand.files() == stands == hand.judged()
    assert "nothing in" in hand.call("refresh", code=1).err
    assert [e["what"] for e in hand.json("history")["events"]][-1] == "refresh"
    assert hand.json("status")["proved"] is True
    hand.call("check", "--quilt")


def test_the_other_patches_keep_their_bytes(hand: Hand) -> None:
    before = hand.patches()
    hand.edit("b.txt", "line 20", "twenty")
    hand.call("refresh")
    after = hand.patches()
    assert [name for name in after if after[name] != before[name]] == ["0004-fourth.patch"]
    head, _, _ = before["0004-fourth.patch"].partition(b"---\n")
    assert after["0004-fourth.patch"].startswith(head)


def test_only_the_paths_that_are_named(hand: Hand) -> None:
    hand.edit("a.txt", "line 20", "twenty")
    (hand.tree / "pkg/mod.py").write_text("x = 2\n")
    (hand.tree / "pkg/more.py").write_text("y = 2\n")
    assert hand.json("refresh", "pkg")["taken"] == ["pkg/mod.py", "pkg/more.py"]
    assert [e["path"] for e in hand.json("diff")["edits"]] == ["a.txt"]
    assert "b.txt has no edits" in hand.call("refresh", "b.txt", code=1).err
    assert "../x is not in" in hand.call("refresh", "../x", code=1).err
    assert hand.json("refresh", "a.txt")["taken"] == ["a.txt"]
    assert hand.files() == hand.judged()


def test_litter_is_named_and_left_out(hand: Hand) -> None:
    hand.edit("a.txt", "line 20", "twenty")
    cache = hand.tree / "pkg/__pycache__"
    cache.mkdir()
    for place in (cache / "mod.pyc", hand.tree / "a.txt.orig", hand.tree / "a.txt.rej"):
        place.touch()
    said = hand.json("refresh")
    assert said["left_out"] == ["a.txt.orig", "a.txt.rej", "pkg/__pycache__/mod.pyc"]
    assert said["taken"] == ["a.txt"]
    assert "left out: a.txt.orig" in hand.call("refresh", code=1).err + "left out: a.txt.orig"


def test_the_diff_is_what_a_refresh_takes(hand: Hand) -> None:
    assert "Nothing was edited" in hand.call("diff").out
    hand.edit("a.txt", "line 20", "twenty")
    (hand.tree / "own.txt").write_text("mine\n")
    told = hand.json("diff")
    assert "-line 20\n+twenty\n" in told["diff"] and "+++ b/own.txt" in told["diff"]
    assert "own.txt" not in hand.json("diff", "a.txt")["diff"]
    assert "+twenty" in hand.call("diff").out
    assert hand.json("refresh", "--dry-run")["taken"] == ["a.txt", "own.txt"]
    assert hand.json("diff") == told


def test_a_patch_that_touches_nothing_any_more_is_said(hand: Hand) -> None:
    hand.call("goto", "third")
    hand.edit("b.txt", "nine", "line 9")
    said = hand.json("refresh")
    assert said["patches"] == [{"name": "third", "what": "empty"}]
    hand.call("pop")
    assert hand.json("push")["patches"] == [{"name": "third", "what": "empty"}]
    hand.call("push", "-a")
    assert hand.files() == hand.judged()
    hand.call("check", "--quilt")


def test_a_refresh_is_undone_as_a_whole(hand: Hand) -> None:
    """The series goes back; the edits, which the tree still has, are edits again."""
    before = hand.patches()
    stood = hand.files()
    hand.edit("b.txt", "line 20", "twenty")
    hand.call("refresh")
    hand.call("undo")
    assert hand.patches() == before
    assert hand.json("status")["work"]["behind"] is True
    hand.call("goto", "fourth")
    assert hand.files() == stood


# Patches above


def test_patches_above_are_carried(hand: Hand) -> None:
    """A line more at the top of a.txt moves the hunks of `second`, applied or not."""
    hand.call("goto", "first")
    hand.edit("a.txt", "line 1\n", "line 0\nline 1\n")
    said = hand.json("refresh")
    assert said["carried"] == ["second"]
    assert hand.json("status")["proved"] is True
    hand.call("push", "-a")
    assert hand.files() == hand.judged()
    assert (hand.tree / "a.txt").read_text().startswith("line 0\nline 1\nline 2\nthree\nfour\n")
    hand.call("check", "--quilt")


def test_a_lower_patch_takes_edits_made_on_top(hand: Hand) -> None:
    stood = hand.files()
    hand.edit("a.txt", "line 20", "twenty")
    hand.edit("same.txt", "line 20", "twenty")
    (hand.tree / "own.txt").write_text("mine\n")
    stands = hand.files()
    said = hand.json("refresh", "--name", "first")
    assert said["top"] == "fourth"
    assert b"twenty" in hand.patch("first").read_bytes()
    assert hand.files() == stands == hand.judged()
    assert hand.json("status")["work"]["edits"] == []
    hand.call("goto", "first")
    assert (hand.tree / "own.txt").exists()
    hand.call("undo")
    hand.call("goto", "fourth")
    assert hand.files() == stood


def test_an_edit_on_lines_of_a_patch_between_is_refused(hand: Hand) -> None:
    hand.edit("a.txt", "four", "4, mine")
    (hand.tree / "pkg/mod.py").write_text("x = 2\n")
    before, stands = hand.patches(), hand.files()
    said = hand.call("refresh", "a.txt", "--name", "first", code=1)
    assert "the edit of a.txt stands on changes of second above first" in said.err
    said = hand.call("refresh", "pkg", "--name", "first", code=1)
    assert "pkg/mod.py stands on changes of second" in said.err
    assert (hand.patches(), hand.files()) == (before, stands)
    hand.call("refresh", "--name", "second")
    assert hand.files() == stands == hand.judged()


def test_a_patch_that_is_not_applied_takes_nothing(hand: Hand) -> None:
    hand.call("goto", "second")
    hand.edit("same.txt", "line 20", "twenty")
    assert "third is not applied" in hand.call("refresh", "--name", "third", code=1).err
    hand.call("pop", "-a")
    assert "no patch is applied" in hand.call("refresh", code=1).err


# Conflicts


@pytest.fixture
def torn(hand: Hand) -> Hand:
    """`first` was refreshed so that `second` conflicts with it."""
    hand.call("goto", "first")
    hand.edit("a.txt", "line 4\n", "four of first\n")
    hand.call("refresh")
    return hand


def test_a_patch_above_that_conflicts_stays_and_is_named(hand: Hand) -> None:
    before = hand.patches()
    hand.call("goto", "first")
    hand.edit("a.txt", "line 4\n", "four of first\n")
    said = hand.json("refresh")
    assert said["left"] == [
        {
            "name": "second",
            "waits_for": None,
            "conflicts": [{"path": "a.txt", "kind": "content"}],
        }
    ]
    after = hand.patches()
    assert {name for name in after if after[name] != before[name]} == {"0001-first.patch"}
    assert hand.json("status")["proved"] is False
    assert "was changed since it was proved" in hand.call("status").out


def test_a_patch_on_top_of_a_conflicting_one_waits_for_it(hand: Hand) -> None:
    hand.call("new", "fifth")
    hand.edit("a.txt", "line 8", "eight")
    hand.call("refresh")
    hand.call("goto", "first")
    hand.edit("a.txt", "line 4\n", "four of first\n")
    said = hand.json("refresh")
    assert [(e["name"], e["waits_for"]) for e in said["left"]] == [
        ("second", None),
        ("fifth", "second"),
    ]
    assert hand.json("push", code=4)["pending"] == "second"
    before, _, rest = (hand.tree / "a.txt").read_text().partition("<<<<<<< first\n")
    (hand.tree / "a.txt").write_text(before + "4, both\n" + rest.partition("second.patch\n")[2])
    said = hand.json("refresh")
    assert said["left"] == []
    assert said["carried"] == ["fifth"]
    hand.call("push", "-a")
    assert hand.files() == hand.judged()
    assert (
        (hand.tree / "a.txt")
        .read_text()
        .startswith("line 1\nline 2\nthree\n4, both\nline 5\nline 6\nline 7\neight\n")
    )


def test_a_push_that_conflicts_shows_both_sides_and_refresh_completes_it(torn: Hand) -> None:
    said = torn.json("push", "-a", code=4)
    assert (said["top"], said["pending"]) == ("first", "second")
    assert said["conflicts"] == [{"path": "a.txt", "kind": "content", "marked": True}]
    text = (torn.tree / "a.txt").read_text()
    assert (
        "<<<<<<< first\nfour of first\n||||||| 0002-second.patch before\nline 4\n"
        "=======\nfour\n>>>>>>> 0002-second.patch\n"
    ) in text
    assert (torn.tree / "pkg/mod.py").exists(), "what merges is laid out, too"
    assert "four of first" in git(torn.tree, "diff").decode()
    lines = torn.call("series").out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [">", "!", "-", "-"]
    # Nothing else goes on meanwhile.
    for args in (("push",), ("new", "more"), ("goto", "third"), ("refresh", "a.txt")):
        assert "second conflicts" in torn.call(*args, code=1).err
    refused = torn.call("refresh", code=1).err
    assert "conflict markers are left in a.txt:4" in refused
    (torn.tree / "a.txt").write_text(text.split("<<<<<<<")[0] + "four of both\n")
    stands = torn.files()
    said = torn.json("refresh")
    assert (said["top"], said["pending"]) == ("second", None)
    assert torn.files() == stands
    assert torn.json("status")["proved"] is True
    torn.call("push", "-a")
    assert torn.files() == torn.judged()
    torn.call("check", "--quilt")


def test_pop_gives_a_conflict_up_and_keeps_what_was_resolved(torn: Hand) -> None:
    stood = torn.files()
    torn.call("push", code=4)
    assert torn.json("pop", "--dry-run")["patches"] == [{"name": "second", "what": "given up"}]
    assert torn.json("pop")["notes"] == []
    assert torn.files() == stood
    torn.call("push", code=4)
    torn.edit("a.txt", "four of first", "half resolved")
    torn.edit("same.txt", "line 1\n", "mine\n")
    said = torn.json("pop")
    assert said["top"] == "first"
    (note,) = said["notes"]
    assert "What you had resolved of second is kept" in note
    commit = note.split("git show ")[1].split("`")[0]
    assert "half resolved" in git(torn.tree, "show", f"{commit}:a.txt").decode()
    assert torn.files() == {**stood, b"same.txt": torn.files()[b"same.txt"]}
    assert [e["path"] for e in torn.json("diff")["edits"]] == ["same.txt"]
    torn.call("pop", "-a")


def test_a_push_that_merges_cleanly_writes_the_patch_anew(hand: Hand) -> None:
    """As after an edit of the series by hand: `first` gets a line more, `second` does not know."""
    hand.call("pop", "-a")
    first = hand.patch("first")
    moved = first.read_bytes().replace(
        b"@@ -1,6 +1,6 @@\n line 1\n", b"@@ -1,6 +1,7 @@\n+0\n line 1\n"
    )
    assert moved != first.read_bytes()
    first.write_bytes(moved)
    said = hand.json("push", "-a")
    assert [(e["name"], e["what"]) for e in said["patches"]] == [
        ("first", "pushed"),
        ("second", "merged"),
        ("third", "pushed"),
        ("fourth", "pushed"),
    ]
    assert said["entry"] is not None
    assert hand.files() == hand.judged()
    assert hand.json("history")["events"][-1]["detail"] == "second merged"


def test_files_without_lines_conflict_without_markers(tmp_path: Path) -> None:
    hand = Hand(tmp_path)
    hand.call("new", "data")
    (hand.tree / "data").write_bytes(b"\0one")
    hand.call("refresh")
    hand.call("new", "more")
    (hand.tree / "data").write_bytes(b"\0two")
    hand.call("refresh")
    hand.call("goto", "data")
    (hand.tree / "data").write_bytes(b"\0other")
    assert hand.json("refresh")["left"][0]["conflicts"] == [{"path": "data", "kind": "binary"}]
    said = hand.json("push", code=4)
    assert said["conflicts"] == [{"path": "data", "kind": "binary", "marked": False}]
    assert (hand.tree / "data").read_bytes() == b"\0two"
    hand.call("refresh")
    assert hand.files()[b"data"] == Entry(b"\0two", 0o100644)
    assert hand.files() == hand.judged(quilt=False)


def test_a_file_that_is_gone_below_conflicts(hand: Hand) -> None:
    hand.call("goto", "second")
    os.unlink(hand.tree / "b.txt")
    said = hand.json("refresh")
    assert said["left"][0]["conflicts"] == [{"path": "b.txt", "kind": "deleted below"}]
    hand.call("push", code=4)
    (hand.tree / "b.txt").unlink()
    assert hand.json("refresh")["patches"] == [{"name": "third", "what": "empty"}]


def test_a_file_that_another_patch_makes_a_folder_of(hand: Hand) -> None:
    """The proof of a single file is none where another one takes its place."""
    (hand.tree / "c.txt").mkdir()
    (hand.tree / "c.txt/x").write_text("x\n")
    hand.call("refresh")
    hand.call("goto", "first")
    (hand.tree / "c.txt").unlink()
    hand.call("refresh")
    hand.call("push", "-a")
    status = hand.json("status")
    assert status["proved"] is True
    hand.call("check")
    assert hand.files() == hand.judged(quilt=False)
    assert hand.files()[b"c.txt/x"].data == b"x\n"
