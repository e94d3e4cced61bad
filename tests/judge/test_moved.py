"""Where upstream's commits moved files: the very same content at one other path; and whether a
landing made all of a patch there.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from patchq.gitstore.log import Commit
from patchq.gitstore.store import Change
from patchq.judge.change import EMPTY, made
from patchq.judge.moved import moved
from patchq.queue.diff import parse
from tests.support.diffs import diff

ONE, TWO = "1" * 40, "2" * 40


def gone(path: bytes, oid: str = ONE) -> Change:
    return Change("D", path, path, "100644", "000000", oid, "0" * 40)


def come(path: bytes, oid: str = ONE) -> Change:
    return Change("A", path, path, "000000", "100644", "0" * 40, oid)


def changed(path: bytes) -> Change:
    return Change("M", path, path, "100644", "100644", ONE, TWO)


def upstream(*commits: list[Change]) -> list[Commit]:
    return [
        Commit(f"{n:040x}", (), "Ada", "2026-10-01", "Tidy", "", tuple(changes))
        for n, changes in enumerate(commits)
    ]


MOVE = [gone(b"a.yml"), come(b"b.yml")]


@pytest.mark.parametrize(
    ("commits", "names"),
    [
        ([MOVE], {b"b.yml": b"a.yml"}),
        ([[come(b"b.yml"), changed(b"c.yml"), gone(b"a.yml")]], {b"b.yml": b"a.yml"}),
        (
            [MOVE, [changed(b"b.yml")], [gone(b"b.yml", TWO), come(b"x/c.yml", TWO)]],
            {b"b.yml": b"a.yml", b"x/c.yml": b"a.yml"},
        ),
        ([MOVE, [gone(b"b.yml"), come(b"a.yml")]], {b"b.yml": b"a.yml"}),
        ([[gone(b"a.yml")], [come(b"b.yml")]], {}),
        ([[gone(b"a.yml"), come(b"b.yml", TWO)]], {}),
        ([[*MOVE, come(b"copy.yml")]], {}),
        ([[*MOVE, gone(b"twin.yml")]], {}),
        ([[gone(b"a.yml", EMPTY), come(b"b.yml", EMPTY)]], {}),
        ([[gone(b"a.yml"), come(b"its.yml")]], {}),
        ([MOVE, [gone(b"b.yml")], [gone(b"its.yml"), come(b"b.yml")]], {}),
        ([MOVE, [gone(b"b.yml", TWO)], [gone(b"c.yml"), come(b"b.yml")]], {}),
        ([MOVE, [come(b"a.yml", TWO)]], {}),
        ([MOVE, [come(b"a.yml", TWO)], [gone(b"a.yml", TWO), come(b"c.yml", TWO)]], {}),
        ([MOVE, [gone(b"b.yml", TWO)]], {}),
        ([[come(b"a.yml"), changed(b"c.yml")], MOVE], {}),
        ([[gone(b"other.yml"), come(b"b.yml")]], {}),
        ([[changed(b"a.yml"), come(b"b.yml")]], {}),
    ],
    ids=[
        "moved",
        "among others",
        "twice",
        "and back",
        "in two commits",
        "and changed",
        "to two places",
        "from two places",
        "empty",
        "to a path of a patch",
        "two to one name",
        "a file of no patch to the name",
        "another file of its first name",
        "another file of its first name, which moves too",
        "and taken away",
        "new in the range",
        "a file of no patch",
        "copied",
    ],
)
def test_what_files_are_called_later(
    commits: list[list[Change]], names: dict[bytes, bytes]
) -> None:
    assert moved(upstream(*commits), {b"a.yml", b"its.yml"}) == names


MINE = " before\n-knob = 0\n+else:\n+    knob = 1\n+    knob = 1\n after\n"


@pytest.mark.parametrize(
    ("path", "its", "all_of_it"),
    [
        ("a.py", MINE, True),
        ("a.py", f"+more\n{MINE}", True),
        ("a.py", " other\n-knob = 0  \n+else:\n+\n+    knob = 1\n+    knob = 1\n", True),
        ("b.py", MINE, False),
        ("a.py", MINE.replace("else:", "elif:"), False),
        ("a.py", MINE.replace("-knob", " knob"), False),
        ("a.py", MINE.replace("+    knob = 1\n after", " after"), False),
        ("a.py", MINE.replace("    knob", "  knob"), False),
    ],
    ids=["it", "more", "else", "elsewhere", "a word", "not removed", "once only", "indented"],
)
def test_all_of_it_is_made(path: str, its: str, all_of_it: bool) -> None:
    assert made(diff("a.py", MINE), [diff("other.py", "+1\n"), diff(path, its)]) is all_of_it


def test_all_of_it_in_two_commits() -> None:
    """Those of two pull requests that one patch holds."""
    halves = [diff("a.py", " before\n-knob = 0\n+else:\n"), diff("a.py", "+    knob = 1\n" * 2)]
    assert made(diff("a.py", MINE), halves)
    assert not made(diff("a.py", MINE), halves[1:])


def test_all_of_it_and_its_mode() -> None:
    text = diff("a.py", MINE)
    runs = replace(text, new_mode="100755")
    assert made(text, [runs])
    assert made(runs, [runs])
    assert not made(runs, [text])
    assert not made(replace(text, whole=True), [text])


def test_a_mode_is_no_line() -> None:
    """Nothing tells who else changed it."""
    mode = b"diff --git a/a.py b/a.py\nold mode 100644\nnew mode 100755\n"
    assert not made(parse(mode, "test")[0], parse(mode, "test"))
