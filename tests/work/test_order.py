"""`delete`, `hold`, `unhold`, `move`: what stands afterwards, for git and quilt, and what cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchq.queue.patch import empty_diff
from tests.support.hand import Hand
from tests.support.stack import FIVE, FOUR, ONE, THREE, TWO, Stack


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    return Stack(tmp_path)


# Moving


def test_move_before(stack: Stack) -> None:
    done = stack.call("move", "five", "--before", "one", "--json").json
    assert stack.lines() == [
        f"{name}.patch" for name in ("0005-five", "0001-one", "0002-two", "0003-three", "0004-four")
    ]
    assert (done["schema"], done["recorded"], done["conflicts"]) == ("patchq.move/1", True, [])
    # The others keep their place in the file, and their bytes.
    assert stack.changed() == {
        *("series/series", "upstream/state.json"),
        *(f"series/{name}" for name in done["rewritten"]),
    }
    assert "0004-four.patch" not in done["rewritten"]
    stack.judge(ONE | THREE | FIVE, FOUR)


def test_the_tree_stays(stack: Stack) -> None:
    tree = stack.call("tree").out
    stack.call("move", "1", "--to-top")
    assert stack.lines()[-1] == "0001-one.patch"
    assert stack.call("tree").out == tree
    stack.judge(ONE | THREE | FIVE, FOUR)
    stack.call("undo")
    assert stack.changed() == set()


def test_what_cannot_be_moved_is_said_and_nothing_changes(stack: Stack) -> None:
    before = stack.files()
    said = stack.call("move", "two", "--after", "three", code=4)
    assert (
        "three in a.txt: the lines that it changes read otherwise there (because of two)"
        in " ".join(said.out.split())
    )
    done = stack.call("move", "three", "--before", "one", "--json", code=4).json
    assert done["conflicts"] == [
        {
            "patch": "three",
            "path": "a.txt",
            "why": "the lines that it changes read otherwise there",
            "with": ["two"],
        }
    ]
    assert (done["recorded"], done["entry"], done["files"]) == (False, None, [])
    assert stack.files() == before


def test_nowhere(stack: Stack) -> None:
    stack.call("move", "one", code=2)
    stack.call("move", "one", "--to-top", "--before", "two", code=2)
    said = stack.call("move", "one", "--before", "one", code=2)
    assert "cannot stand beside itself" in said.err
    said = stack.call("move", "five", "--to-top")
    assert "nothing was changed" in said.out
    assert [e["what"] for e in stack.call("history", "--json").json["events"]] == ["init", "import"]


# Deleting


def test_delete(stack: Stack) -> None:
    text = (stack.root / "series/0003-three.patch").read_bytes()
    stack.call("delete", "three", "--why", "not wanted")
    assert not (stack.root / "series/0003-three.patch").exists()
    kept = (stack.root / "series/retired/0003-three.patch").read_bytes()
    assert kept.endswith(text[text.index(b"---\ndiff") :])
    assert b"Patchq-Dropped: deleted on v1\nPatchq-Evidence: not wanted\n" in kept
    stack.judge(ONE | TWO | FIVE, FOUR)
    (event,) = stack.call("history", "three", "--json").json["events"][-1:]
    assert (event["what"], event["detail"]) == ("dropped: deleted on v1", "not wanted")
    assert event["patch"].encode() == kept
    stack.call("undo")
    assert stack.changed() == set()


def test_delete_what_others_need(stack: Stack) -> None:
    before = stack.files()
    done = stack.call("delete", "two", "--why", "x", "--json", code=4).json
    assert [clash["patch"] for clash in done["conflicts"]] == ["three"]
    assert stack.files() == before


def test_delete_all(stack: Stack) -> None:
    for name in ("five", "four", "three", "two", "one"):
        stack.call("delete", name, "--why", "all of them")
    assert stack.lines() == []
    stack.judge({}, {}, new=False)
    assert stack.call("status", "--json").json["retired"] == 5


def test_a_dry_run(stack: Stack) -> None:
    before = stack.files()
    done = stack.call("delete", "one", "--why", "x", "--dry-run", "--json").json
    assert (done["dry_run"], done["recorded"]) == (True, False)
    assert "series/retired/0001-one.patch" in done["files"]
    assert stack.files() == before


def test_a_check_that_fails_without_it(stack: Stack) -> None:
    """Its proof holds no more: nothing is changed, exit status 5."""
    check = "Patchq-Check=grep -q three a.txt"
    stack.call("edit", "five", "--set", check)
    stack.call("check", "--confirm")
    before = stack.files()
    said = stack.call("delete", "one", "--why", "x", code=5)
    assert "the proof failed, nothing was changed" in said.out
    assert "check of five" in said.out
    assert stack.files() == before


# Holding


def test_hold_and_unhold(stack: Stack) -> None:
    stack.call("hold", "four", "--why", "wait for\nthe answer")
    assert stack.lines()[3] == "# held 0004-four.patch: wait for the answer"
    assert (stack.root / "series/0004-four.patch").is_file()
    stack.judge(ONE | THREE | FIVE, {}, new=False)
    assert stack.call("status", "--json").json["held"] == [
        {"name": "four", "why": "wait for the answer"}
    ]
    (report,) = [
        p
        for p in stack.call("sync", "--onto", "v1", "--json").json["patches"]
        if p["name"] == "four"
    ]
    assert (report["action"], report["carry"]) == ("hold", "held")
    stack.call("unhold", "four")
    assert stack.changed() == set(), "as if nothing had been"
    stack.judge(ONE | THREE | FIVE, FOUR)


def test_hold_once_more_is_another_reason(stack: Stack) -> None:
    stack.call("hold", "four", "--why", "a")
    stack.call("hold", "four", "--why", "b")
    assert stack.lines()[3] == "# held 0004-four.patch: b"


def test_hold_what_others_need(stack: Stack) -> None:
    assert "three in a.txt" in stack.call("hold", "two", "--why", "x", code=4).out


@pytest.fixture
def stale(tmp_path: Path) -> Hand:
    """`first` changes a file that `fourth` removes as it was: `fourth` does not apply any more."""
    hand = Hand(tmp_path)
    hand.call("push")
    hand.edit("c.txt", "line 20", "twenty")
    assert [each["name"] for each in hand.json("refresh")["left"]] == ["fourth"]
    return hand


def test_a_series_that_does_not_apply_is_not_taken_for_one_that_does(stale: Hand) -> None:
    before = stale.patches()
    for command in ("hold", "delete"):
        said = stale.call(command, "second", "--why", "x", code=1)
        assert "0004-fourth.patch does not apply to its own base: patch failed: c.txt" in said.err
    assert stale.patches() == before


@pytest.mark.parametrize("command", ["hold", "delete"])
def test_the_patch_that_does_not_apply_is_put_aside(stale: Hand, command: str) -> None:
    stale.call(command, "fourth", "--why", "c.txt is needed")
    assert stale.json("status")["proved"] is True
    stale.call("push", "-a")
    assert stale.files() == stale.judged()
    assert b"twenty" in stale.files()[b"c.txt"].data


def test_a_patch_that_changes_nothing_names_another_file(stack: Stack) -> None:
    """`new` names a file that `four` adds: without `four` it names one that is there."""
    stack.call("new", "empty")
    patch = stack.root / "series/0006-empty.patch"
    patch.write_bytes(patch.read_bytes().partition(b"diff --git")[0] + empty_diff(b"new.txt"))
    done = stack.call("hold", "four", "--why", "later", "--json").json
    assert done["rewritten"] == ["0006-empty.patch"]
    assert patch.read_bytes().endswith(empty_diff(b"b.txt"))
    stack.judge(ONE | THREE | FIVE, {}, new=False)


def test_unhold_what_is_not_held(stack: Stack) -> None:
    assert "one is not held" in stack.call("unhold", "one", code=1).err


def test_unhold_where_upstream_moved_the_lines(stack: Stack) -> None:
    """The hunks are rewritten for their place, never looked for by their context alone."""
    shifted = stack.upstream.branch("main", at="v1").commit("shift")
    data = shifted.tree[b"b.txt"].data
    shifted.write("b.txt", b"first\n" * 9 + data).tag("v1.1")
    stack.upstream.save()
    stack.call("hold", "four", "--why", "x")
    stack.call("sync", "--onto", "v1.1")
    stack.call("unhold", "four")
    text = (stack.root / "series/0004-four.patch").read_text()
    assert "@@ -11,7 +11,7 @@" in text and "@@ -31,7 +31,7 @@" in text
    assert stack.call("check", "--quilt", "--json").json["proof"]["ok"]


def test_unhold_where_upstream_changed_the_lines(stack: Stack) -> None:
    other = stack.upstream.branch("main", at="v1").commit("other")
    other.edit("b.txt", b"line 5\n", b"5, upstream's\n").tag("v1.1")
    stack.upstream.save()
    stack.call("hold", "four", "--why", "x")
    stack.call("sync", "--onto", "v1.1")
    before = stack.files()
    done = stack.call("unhold", "four", "--json", code=4).json
    assert [(c["patch"], c["path"], c["with"]) for c in done["conflicts"]] == [
        ("four", "b.txt", [])
    ]
    assert stack.files() == before


def test_unhold_below_others(stack: Stack) -> None:
    """Later patches that touch its lines by now are told."""
    stack.call("hold", "four", "--why", "x")
    (stack.folder / "six.patch").write_text(
        "--- a/b.txt\n+++ b/b.txt\n@@ -5,1 +5,1 @@\n-line 5\n+5, ours\n"
    )
    path = stack.folder / "six.patch"
    path.write_text(
        path.read_text().replace("@@ -5,1 +5,1 @@\n", "@@ -4,3 +4,3 @@\n line 4\n") + " line 6\n"
    )
    stack.call("import", str(path))
    done = stack.call("unhold", "four", "--json", code=4).json
    assert [(c["patch"], c["with"]) for c in done["conflicts"]] == [("six", ["four"])]


def test_a_held_patch_is_moved_renamed_edited_deleted(stack: Stack) -> None:
    stack.call("hold", "four", "--why", "x: y")
    stack.call("move", "four", "--before", "one")
    stack.call("rename", "four", "vier")
    stack.call("edit", "vier", "--subject", "Vier")
    assert stack.lines()[0] == "# held 0004-vier.patch: x: y"
    stack.judge(ONE | THREE | FIVE, {}, new=False)
    stack.call("unhold", "vier")
    assert stack.lines()[0] == "0004-vier.patch"
    stack.judge(ONE | THREE | FIVE, FOUR)
    stack.call("hold", "vier", "--why", "z")
    stack.call("delete", "vier", "--why", "z")
    assert len(stack.lines()) == 4


# On a series as people leave it


def test_a_series_that_quilt_refreshed_keeps_its_other_bytes(stack: Stack) -> None:
    """In quilt's form, with comments: what does not change is not rewritten."""
    path = stack.root / "series/0005-five.patch"
    text = path.read_bytes()
    head, _, hunks = text.partition(b"---\ndiff")
    hunks = hunks[hunks.index(b"\n--- a/a.txt") + 1 :]
    path.write_bytes(head + b"---\nIndex: a/a.txt\n" + b"=" * 67 + b"\n" + hunks)
    series = stack.root / "series/series"
    series.write_text("# ours\n\n" + series.read_text().replace("one.patch", "one.patch # why"))
    kept = path.read_bytes()
    stack.call("move", "four", "--before", "two")
    assert path.read_bytes() == kept
    assert stack.lines()[:3] == ["# ours", "", "0001-one.patch # why"]
    assert not any(line.startswith("0004-four.patch #") for line in stack.lines())


# Beside another queue


def test_another_queue(stack: Stack) -> None:
    stack.call("init", "other", "--git", str(stack.upstream.path), "--base", "v1")
    stack.call("import", "--queue", "other", "--git", str(stack.upstream.path), "v1..stack")
    stack.commit()
    stack.call("hold", "four", "--why", "x", "--queue", "other")
    stack.call("move", "one", "--to-top", "--queue", "other")
    assert stack.changed() == {
        "upstream/state.json",
        *(f"series/other/{name}" for name in ("series", "0001-one.patch", "0005-five.patch")),
        *(f"series/other/{name}" for name in ("0002-two.patch", "0003-three.patch")),
    }
    stack.judge(ONE | THREE | FIVE, FOUR)
    for name in ("", "other"):
        queue = ("--queue", name) if name else ()
        assert stack.call("check", "--quilt", "--json", *queue).json["proof"]["ok"]


def test_completion(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    from patchq.cli import complete

    stack.call("hold", "four", "--why", "x")
    monkeypatch.chdir(stack.root)
    assert complete.held_names("") == ["four"]
    assert complete.held_names("x") == []
    assert complete.patch_names("f") == ["four", "five"]
    monkeypatch.chdir(stack.folder)
    assert complete.held_names("") == []
