"""`patchq` inside this process: quick, and where a test can reach into it."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from patchq.cli.main import main
from tests.support.history import History, git, lines
from tests.support.kit import bare_repository

TEXT = lines(range(1, 31))


@dataclass(frozen=True)
class Said:
    """What a call left: exit code, and both streams as texts."""

    args: tuple[str, ...]
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value


def stream() -> io.TextIOWrapper:
    """A stream as a process has: texts go through it, and bytes."""
    return io.TextIOWrapper(
        io.BytesIO(), "utf-8", "surrogateescape", newline="", write_through=True
    )


def written(to: io.TextIOWrapper) -> str:
    assert isinstance(to.buffer, io.BytesIO)
    return to.buffer.getvalue().decode("utf-8", "surrogateescape")


def call(root: Path, *args: str, code: int | None = 0) -> Said:
    """Run `patchq ARGS` in the folder `root`; `code` is what it must exit with (None: anything)."""
    out, err = stream(), stream()
    with (
        contextlib.chdir(root),
        mock.patch.object(sys, "argv", ["patchq", *args]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            got = main()
        finally:
            gc.enable()  # a process of its own would be gone
    said = Said(args, got, written(out), written(err))
    assert code is None or got == code, said
    return said


class Small:
    """The smallest queue that shows everything: one patch lands, one is carried.

    v2 takes the patch `lands`; v3 conflicts with `stays`.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.root = folder / "queue"
        self.upstream = History(folder / "upstream.git")
        self.upstream.commit().write("a.txt", TEXT).write("b.txt", TEXT).tag("v1")
        change = self.upstream.commit().edit("a.txt", b"line 3\n", b"three\n")
        change.edit("b.txt", b"line 9\n", b"nine\n").tag("v2")
        change = self.upstream.commit().edit("a.txt", b"line 20\n", b"20, upstream's\n").tag("v3")
        topic = self.upstream.branch("topic", at="v1").commit("Lands")
        topic.edit("b.txt", b"line 9\n", b"nine\n")
        topic.commit("Stays").edit("a.txt", b"line 20\n", b"20, ours\n")
        self.upstream.save()

    def repository(self) -> Small:
        bare_repository(self.root)
        return self

    def made(self) -> Small:
        """With the queue `demo`, on v1."""
        self.repository()
        self.call("init", "demo", "--git", str(self.upstream.path), "--base", "v1")
        return self

    def filled(self) -> Small:
        """With both patches, committed."""
        self.made()
        self.call("import", "--git", str(self.upstream.path), "v1..topic")
        self.commit()
        return self

    def call(self, *args: str, code: int | None = 0) -> Said:
        return call(self.root, *args, code=code)

    def commit(self) -> None:
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "--no-verify", "-m", "queue")

    def files(self) -> dict[str, bytes]:
        """Everything in the work tree, but for `.git`."""
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and ".git" not in path.relative_to(self.root).parts
        }
