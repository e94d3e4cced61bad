"""A queue of four patches and its working tree, for tests of the commands that work in it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from tests.support.appliers import apply_with_git, apply_with_quilt, read_tree, without_submodules
from tests.support.history import History, Tree, git, lines, link, script
from tests.support.inside import Said, call
from tests.support.kit import bare_repository

TEXT = lines(range(1, 31))
NAMES = ("first", "second", "third", "fourth")


class Hand:
    """`first` and `second` change neighbouring lines of a.txt, `third` b.txt, `fourth` the rest.

    `second` adds pkg/mod.py; `fourth` removes c.txt, makes run.sh plain, turns the link.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.root = folder / "queue"
        self.upstream = History(folder / "upstream.git")
        start = self.upstream.commit()
        for name in ("a.txt", "b.txt", "c.txt", "same.txt"):
            start.write(name, TEXT)
        start.write("run.sh", script(b"#!/bin/sh\n")).write("to", link(b"a.txt")).tag("v1")
        self.upstream.commit().edit("b.txt", b"line 25\n", b"25\n").tag("v2")
        topic = self.upstream.branch("topic", at="v1").commit("First")
        topic.edit("a.txt", b"line 3\n", b"three\n")
        topic = topic.commit("Second").edit("a.txt", b"line 4\n", b"four\n")
        topic.write("pkg/mod.py", b"x = 1\n")
        topic = topic.commit("Third").edit("b.txt", b"line 9\n", b"nine\n")
        topic = topic.commit("Fourth").delete("c.txt").chmod("run.sh", 0o100644)
        topic.link("to", b"b.txt")
        self.upstream.save()
        bare_repository(self.root)
        self.call("init", "demo", "--git", str(self.upstream.path), "--base", "v1")
        self.call("import", "--git", str(self.upstream.path), "v1..topic")
        self.commit()

    @property
    def tree(self) -> Path:
        return self.root / ".git/patchq/work/demo/tree"

    def call(self, *args: str, code: int | None = 0) -> Said:
        return call(self.root, *args, code=code)

    def json(self, *args: str, code: int | None = 0) -> dict[str, Any]:
        return self.call(*args, "--json", code=code).json

    def commit(self) -> None:
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "--allow-empty", "--no-verify", "-m", "queue")

    def edit(self, path: str, old: str, new: str) -> None:
        """What a user's editor does."""
        file = self.tree / path
        text = file.read_text()
        assert text.count(old) == 1, text
        file.write_text(text.replace(old, new))

    def patch(self, name: str) -> Path:
        (found,) = self.root.glob(f"series/*-{name}.patch")
        return found

    def patches(self) -> dict[str, bytes]:
        """The series folder."""
        folder = self.root / "series"
        return {p.name: p.read_bytes() for p in sorted(folder.iterdir()) if p.is_file()}

    def files(self) -> Tree:
        """What stands in the working tree."""
        return {path: entry for path, entry in read_tree(self.tree).items() if path != b".git"}

    def times(self) -> dict[str, int]:
        """When each file of the working tree was written."""
        found = {}
        for folder, _, names in os.walk(self.tree):
            for name in set(names) - {".git"}:
                path = Path(folder, name)
                found[str(path.relative_to(self.tree))] = path.lstat().st_mtime_ns
        return found

    def judged(self, release: str = "v1", *, quilt: bool = True) -> Tree:
        """The files that the series gives, by `git apply`; quilt must give the same.

        quilt takes no binary files.
        """
        work = self.folder / "judged"
        shutil.rmtree(work, ignore_errors=True)
        _, tree = apply_with_git(self.upstream, release, self.root / "series", work / "git")
        if not quilt:
            return without_submodules(tree)
        pushed = apply_with_quilt(self.upstream, release, self.root / "series", work / "quilt")
        # quilt's own limits: it restores no link, and knows no change of mode without lines.
        ours = {path: entry for path, entry in tree.items() if path not in (b"to", b"run.sh")}
        assert {p: e for p, e in pushed.items() if p not in (b"to", b"run.sh")} == ours
        return without_submodules(tree)

    def age(self) -> None:
        """Make every file of the working tree an hour old: what is written anew shows."""
        for name, time in self.times().items():
            os.utime(self.tree / name, ns=(time, time - 3600 * 10**9), follow_symlinks=False)
