"""A queue of five patches that stand on each other here and there, for commands on the series.

one: a.txt, line 3. two: a.txt, line 12. three: the line of two. four: new.txt, and lines 5 and 25 of
b.txt. five: a.txt, line 25.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.appliers import apply_with_git, apply_with_quilt
from tests.support.history import Entry, Tree, git
from tests.support.inside import TEXT, Small


class Stack(Small):
    """The five, imported and committed, on v1 (two files of thirty lines)."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.judged = 0
        made = self.upstream.branch("stack", at="v1").commit("One")
        made = made.edit("a.txt", b"line 3\n", b"three\n").commit("Two\n\nIts text.\n")
        made = made.edit("a.txt", b"line 12\n", b"twelve\n").commit("Three")
        made = made.edit("a.txt", b"twelve\n", b"twelve, again\n").commit("Four")
        made.write("new.txt", b"new\n").edit("b.txt", b"line 5\n", b"five\n")
        made = made.edit("b.txt", b"line 25\n", b"twenty-five\n").commit("Five")
        made.edit("a.txt", b"line 25\n", b"25\n")
        self.upstream.save()
        self.made()
        self.call("import", "--git", str(self.upstream.path), "v1..stack")
        self.commit()

    def lines(self) -> list[str]:
        """The series file's lines."""
        return (self.root / "series/series").read_text().splitlines()

    def changed(self) -> set[str]:
        """Files that differ from the commit."""
        found = git(self.root, "status", "--porcelain", "-uall").decode().splitlines()
        return {line[3:] for line in found}

    def judge(self, a: dict[bytes, bytes], b: dict[bytes, bytes], *, new: bool = True) -> None:
        """git's and quilt's view of the folder is v1 with these lines exchanged."""
        self.judged += 1
        work = self.folder / f"judged-{self.judged}"
        wanted: Tree = {b"a.txt": Entry(_edited(a)), b"b.txt": Entry(_edited(b))}
        if new:
            wanted[b"new.txt"] = Entry(b"new\n")
        series = self.root / "series"
        hash_, tree = apply_with_git(self.upstream, "v1", series, work / "git")
        assert tree == wanted
        assert self.call("tree").out.strip() == hash_
        assert apply_with_quilt(self.upstream, "v1", series, work / "quilt") == wanted
        checks = self.call("check", "--json").json["proof"]
        assert checks["ok"], checks


def _edited(edits: dict[bytes, bytes]) -> bytes:
    data = TEXT
    for old, new in edits.items():
        assert data.count(old) == 1
        data = data.replace(old, new)
    return data


ONE = {b"line 3\n": b"three\n"}
TWO = {b"line 12\n": b"twelve\n"}
THREE = {b"line 12\n": b"twelve, again\n"}
FIVE = {b"line 25\n": b"25\n"}
FOUR = {b"line 5\n": b"five\n", b"line 25\n": b"twenty-five\n"}
