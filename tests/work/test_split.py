"""`split`: files or hunks become a patch of their own; the tree stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchq.errors import UsageError
from patchq.work import split
from tests.support.stack import FIVE, FOUR, ONE, THREE, Stack


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    return Stack(tmp_path)


def diff_of(stack: Stack, name: str) -> str:
    diff = stack.call("show", name, "--json").json["diff"]
    assert isinstance(diff, str)
    return diff


def test_a_file(stack: Stack) -> None:
    stack.call("edit", "four", "--set", "Patchq-Check=true", "--set", "Origin=vendor")
    done = stack.call("split", "four", "--as", "new-file", "--json", "--", "new.txt").json
    assert done["rewritten"] == ["0006-new-file.patch", "0004-four.patch"]
    assert stack.lines()[3:5] == ["0006-new-file.patch", "0004-four.patch"]
    assert "b.txt" not in diff_of(stack, "new-file") and "new.txt" not in diff_of(stack, "four")
    shown = stack.call("show", "new-file", "--json").json
    assert shown["subject"] == "Four (new-file)"
    assert ["Origin", "vendor"] in shown["header"]
    assert "Patchq-Check" not in dict(shown["header"])
    assert "Patchq-Check" in dict(stack.call("show", "four", "--json").json["header"])
    stack.call("check", "--confirm")
    stack.judge(ONE | THREE | FIVE, FOUR)
    stack.call("undo")
    assert stack.lines()[3] == "0004-four.patch"


def test_after_it(stack: Stack) -> None:
    stack.call("split", "4", "--as", "b", "--after", "--subject", "B", "--", "b.txt")
    assert stack.lines()[3:5] == ["0004-four.patch", "0006-b.patch"]
    assert stack.call("show", "b", "--json").json["subject"] == "B"
    stack.judge(ONE | THREE | FIVE, FOUR)


@pytest.mark.parametrize("after", [(), ("--after",)])
def test_hunks(stack: Stack, after: tuple[str, ...]) -> None:
    """b.txt has two, new.txt is one: 1 and 2, 3."""
    stack.call("split", "four", "--as", "late", "--hunks", "2-3", *after)
    text = diff_of(stack, "late")
    assert "twenty-five" in text and "five\n-" not in text and "new.txt" in text
    assert "+five" in diff_of(stack, "four") and "new.txt" not in diff_of(stack, "four")
    stack.judge(ONE | THREE | FIVE, FOUR)


def test_the_parts_stand_alone(stack: Stack) -> None:
    stack.call("split", "four", "--as", "late", "--hunks", "2")
    stack.call("delete", "late", "--why", "x")
    stack.judge(ONE | THREE | FIVE, {b"line 5\n": b"five\n"})


@pytest.mark.parametrize(
    ("args", "code", "why"),
    [
        ((), 1, "nothing is chosen"),
        (("--", "a.txt"), 1, "the patch does not touch a.txt"),
        (("--", "b.txt", "new.txt"), 1, "that is the whole patch"),
        (("--hunks", "1-3"), 1, "that is the whole patch"),
        (("--hunks", "4"), 1, "the patch has no hunk 4"),
        (("--hunks", "x"), 2, "is no list of hunks"),
    ],
)
def test_nothing_to_split(stack: Stack, args: tuple[str, ...], code: int, why: str) -> None:
    before = stack.files()
    said = stack.call("split", "four", "--as", "x", *args, code=code).err
    assert why in said
    if "whole" not in why and code == 1:
        assert "it has b.txt (hunks 1-2), new.txt (hunk 3)" in said
    assert stack.files() == before


def test_a_name_in_use(stack: Stack) -> None:
    assert "'one' is in use" in stack.call("split", "4", "--as", "one", "--", "b.txt", code=1).err


def test_numbers() -> None:
    assert split.numbers("1,3-5,9") == {1, 3, 4, 5, 9}
    for wrong in ("", "1,", "a", "1-", "-1", "²"):
        with pytest.raises(UsageError):
            split.numbers(wrong)
