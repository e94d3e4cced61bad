"""The folder in which a result grows: beside its place, locked, resumed, and renamed at the end.

`.NAME.partial/` holds `data/` (what becomes NAME), `plan` (a digest of what is made) and `lock`.
A shard under its own name in `data/` is whole and on the disk; one that is not is `*.part`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

from patchq.errors import PatchqError, UsageError

PART = ".part"


def check_target(source: Path, target: Path) -> None:
    """Raises UsageError where `target` exists, lies inside `source`, or has no folder to lie in."""
    if os.path.lexists(target):
        raise UsageError(f"{target} exists", "name a folder that does not exist yet")
    if not target.name or target.name in (".", ".."):
        raise UsageError(f"{target} is no name for a new folder", "name a new folder")
    parent = target.parent.resolve()
    if not parent.is_dir():
        raise UsageError(f"{parent} is no folder", "make it first")
    root = source.resolve()
    if root.is_file():
        root = root.parent
    if parent == root or root in parent.parents:
        raise UsageError(
            f"{target} lies inside {source}", "name a folder beside it: the source stays as it is"
        )


class Partial:
    """The growing result for `target`; `plan` is the digest of what it is to become.

    Use as a context manager: it holds the lock. What was begun for another plan is removed.
    Raises PatchqError if another run holds it.
    """

    def __init__(self, target: Path, plan: str) -> None:
        self.target = target.parent.resolve() / target.name
        self.root = self.target.parent / f".{target.name}.partial"
        self.data = self.root / "data"
        self._plan = plan
        self._lock = -1

    def __enter__(self) -> Partial:
        try:
            self.root.mkdir(exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._lock = os.open(self.root / "lock", flags, 0o644)
        except OSError as problem:
            raise PatchqError(
                f"{self.root} cannot be made: {problem.strerror}", "choose another place"
            ) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise PatchqError(
                f"another run is writing {self.target}", "wait until it is done, or end it"
            ) from None
        note = self.root / "plan"
        if not note.is_file() or note.read_text(encoding="utf-8") != self._plan:
            shutil.rmtree(self.data, ignore_errors=True)
            note.write_text(self._plan, encoding="utf-8")
        self.data.mkdir(exist_ok=True)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._lock)

    def holds(self, file: str, size: int, header: bytes) -> bool:
        """Whether `file` is finished: it has its name, its size and its header."""
        path = self.data / file
        if path.is_symlink() or not path.is_file() or path.stat().st_size != size:
            return False
        with path.open("rb") as stream:
            return stream.read(len(header)) == header

    def part(self, file: str) -> Path:
        return self.data / f"{file}{PART}"

    def finish(self, file: str) -> None:
        """`file` is whole and on the disk."""
        os.rename(self.part(file), self.data / file)

    def free(self) -> int:
        """Bytes that may still be written here, those of unfinished shards counted as free."""
        status = os.statvfs(self.data)
        parts = sum(map(_size, self.data.glob(f"*{PART}")))
        return status.f_bavail * status.f_frsize + parts

    def complete(self) -> None:
        """Put the result in its place, in one step."""
        _sync_folder(self.data)
        if os.path.lexists(self.target):
            raise UsageError(f"{self.target} exists by now", "move it away and run this again")
        os.rename(self.data, self.target)
        _sync_folder(self.target.parent)
        shutil.rmtree(self.root, ignore_errors=True)


def _size(path: Path) -> int:
    """Bytes of a file; 0 where it has just got its own name (by a thread of an interrupted run)."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
