"""A pull request's diff and header, as a patch to be."""

from __future__ import annotations

import pytest

from patchq.carry.pulls.take import Span, clean, each_commit, paths, whole, without
from patchq.errors import PatchqError
from tests.support.history import git, lines
from tests.support.kit import Kit

TEXT = lines(range(1, 21))


@pytest.fixture
def kit(kit: Kit) -> Kit:
    kit.history.commit("start").write("a.py", TEXT).write("tests/t.py", TEXT).tag("v1")
    return kit


def span(kit: Kit, head: str, base: str = "v1") -> Span:
    return Span(kit.release(base).commit, kit.release(head).commit)


def test_whole_files_are_left_out(kit: Kit) -> None:
    """The `diff --git` in a file's text is text; patterns reach into folders."""
    evil = b"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n"
    change = kit.history.branch("x", at="v1").commit("x").edit("a.py", b"line 3\n", evil)
    change.write("tests/deep/t.py", b"1\n").write("docs/x.md", b"1\n").write("tests/o", b"\0\1")
    (diff,) = kit.store.diff_texts([(kit.tree("v1"), kit.tree("x"))])

    assert paths(diff) == [b"a.py", b"docs/x.md", b"tests/deep/t.py", b"tests/o"]
    kept, left_out = without(diff, ["tests/*", "*.md"])
    assert left_out == (b"docs/x.md", b"tests/deep/t.py", b"tests/o")
    assert paths(kept) == [b"a.py"]
    assert without(diff, ()) == (diff, ())
    assert without(b"", ["*"]) == (b"", ())


def test_one_commit_keeps_its_message(kit: Kit) -> None:
    kit.history.branch("x", at="v1").commit("Knob\n\nIt turns.").by(b"Ada").write("k", b"1\n")
    piece = whole(kit.store, span(kit, "x"), ())
    assert (piece.header.subject, piece.header.body) == ("Knob", "It turns.")
    assert piece.header.get("From").startswith("Ada <")


def test_several_commits_are_listed(kit: Kit) -> None:
    change = kit.history.branch("x", at="v1").commit("One").by(b"Ada").write("k", b"1\n")
    change.commit("Two").by(b"Bob").write("k", b"2\n")
    piece = whole(kit.store, span(kit, "x"), (), "Title of\nthe request")
    assert piece.header.subject == "Title of the request"
    assert piece.header.body == "* One\n* Two"
    assert piece.header.get("From").startswith("Ada <"), "who began it"


def merged_from_main(kit: Kit) -> Span:
    """The pull request took its branch's news in between: they are not part of it."""
    kit.history.branch("main").commit("news").edit("a.py", b"line 9\n", b"9, news\n")
    kit.history.branch("x", at="v1").commit("One").edit("a.py", b"line 3\n", b"3\n")
    kit.history.save()
    up = kit.history.path
    tree = git(up, "merge-tree", "--write-tree", "x", "main").decode().strip()
    merge = git(up, "commit-tree", tree, "-p", "x", "-p", "main", "-m", "Merge main").decode()
    return Span(git(up, "rev-parse", "main").decode().strip(), merge.strip())


def test_merges_of_the_target_branch_are_not_its_change(kit: Kit) -> None:
    piece = whole(kit.store, merged_from_main(kit), ())
    assert piece.header.subject == "One"
    assert b"news" not in b"".join(x for x in piece.diff.splitlines() if x[:1] in b"+-")


def test_commit_by_commit_needs_a_line(kit: Kit) -> None:
    with pytest.raises(PatchqError, match="no straight line") as caught:
        each_commit(kit.store, merged_from_main(kit), ())
    assert "without --per-commit" in caught.value.hint


def test_nothing_is_left(kit: Kit) -> None:
    kit.history.branch("x", at="v1").commit("x").write("tests/n.py", b"1\n")
    with pytest.raises(PatchqError, match="--exclude leaves nothing of it"):
        each_commit(kit.store, span(kit, "x"), ["tests/*"])
    with pytest.raises(PatchqError, match="it changes nothing"):
        whole(kit.store, span(kit, "v1"), ())


def test_commits_that_are_not_there(kit: Kit) -> None:
    with pytest.raises(PatchqError, match="are not in the store"):
        whole(kit.store, Span(kit.release("v1").commit, "1" * 40), ())


def test_titles_are_harmless() -> None:
    assert clean("a\x1b[2J\nb\u202ec") == "a\\x1b[2J b\\u202ec"
