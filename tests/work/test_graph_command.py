"""`graph`, and the working tree beside the commands that change the series."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.history import git
from tests.support.inside import TEXT
from tests.support.stack import Stack


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    return Stack(tmp_path)


def test_graph(stack: Stack) -> None:
    before = stack.files()
    found = stack.call("graph", "--json").json
    assert (found["schema"], found["queue"], found["base"]) == ("patchq.graph/1", "demo", "v1")
    needs = {patch["name"]: patch["needs"] for patch in found["patches"]}
    assert list(needs) == ["one", "two", "three", "four", "five"]
    assert needs.pop("three") == [{"name": "two", "kind": "lines", "path": "a.txt"}]
    assert not any(needs.values())
    assert "└─ two  (its lines in a.txt)" in stack.call("graph").out
    assert '"three" -> "two" [label="lines"];' in stack.call("graph", "--dot").out
    assert stack.files() == before


def test_around_a_patch(stack: Stack) -> None:
    for name in ("two", "three"):
        found = stack.call("graph", name, "--json").json
        assert [patch["name"] for patch in found["patches"]] == ["two", "three"]
    stack.call("hold", "four", "--why", "x")
    assert "four is held" in stack.call("graph", "four", code=1).err
    assert "no patch 'six'" in stack.call("graph", "six", code=1).err
    stack.call("graph", "--dot", "--json", code=2)


def test_the_working_tree_goes_along(stack: Stack) -> None:
    stack.call("push", "-a")
    tree = stack.root / ".git/patchq/work/demo/tree"
    said = stack.call("delete", "three", "--why", "x")
    assert "five is on top" in said.err
    twelve = TEXT.replace(b"line 3\n", b"three\n").replace(b"line 12\n", b"twelve\n")
    assert (tree / "a.txt").read_bytes() == twelve.replace(b"line 25\n", b"25\n")
    assert git(tree, "status", "--porcelain") == b""
    stack.call("hold", "four", "--why", "x")
    assert not (tree / "new.txt").exists()
    stack.call("rename", "five", "fuenf")
    assert "fuenf on top" in stack.call("status").out


def test_edits_in_the_working_tree_stay(stack: Stack) -> None:
    """The series is changed, and the tree waits for them."""
    stack.call("push", "-a")
    file = stack.root / ".git/patchq/work/demo/tree/a.txt"
    file.write_bytes(file.read_bytes().replace(b"line 13\n", b"mine\n"))
    mine = file.read_bytes()
    said = stack.call("delete", "three", "--why", "x")
    assert "stays as it was" in said.err and "a.txt" in said.err
    assert file.read_bytes() == mine
    assert "0003-three.patch" not in stack.lines()
