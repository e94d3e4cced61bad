"""Files on disk beside what a tree says of them: read without following links, told apart."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from patchq.gitstore.objects import GITLINK, blob_id

NONE = "0" * 40
"""The id that a raw diff gives to what is absent."""

_LINK = "120000"
_MARKS = (b"<<<<<<<", b"|||||||", b"=======", b">>>>>>>")
_LITTER_ENDS = (b".orig", b".rej", b".pyc", b".pyo", b".swp", b".swo", b"~")
_LITTER_FOLDERS = (b"__pycache__", b".mypy_cache", b".pytest_cache", b".ruff_cache")


class Files:
    """The files below `folder`, by their paths in a tree."""

    def __init__(self, folder: Path) -> None:
        self._root = os.fsencode(folder)

    def found(self, path: bytes) -> tuple[str, bytes] | None:
        """Mode and content of what stands at `path`; a folder has none. No link is followed."""
        for parent in parents(path):
            if os.path.islink(os.path.join(self._root, parent)):
                return None
        full = os.path.join(self._root, path)
        try:
            mode = os.lstat(full).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None
        if stat.S_ISLNK(mode):
            return _LINK, os.readlink(full)
        if stat.S_ISDIR(mode):
            return GITLINK, b""
        with open(full, "rb") as file:
            return "100755" if mode & 0o100 else "100644", file.read()

    def holds(self, path: bytes, mode: str, oid: str) -> bool:
        """Whether the blob `oid` stands at `path` (NONE: nothing does)."""
        found = self.found(path)
        if found is None or oid == NONE:
            return found is None and oid == NONE
        return found[0] == mode and (mode == GITLINK or blob_id(found[1]) == oid)

    def is_full(self, path: bytes) -> bool:
        """Whether a folder with something in it stands at `path`."""
        full = os.path.join(self._root, path)
        return os.path.isdir(full) and not os.path.islink(full) and bool(os.listdir(full))

    def remove(self, path: bytes) -> None:
        """Remove a file, and the folders above it that this leaves empty."""
        found = self.found(path)
        if found is None:
            return
        folders = parents(path)
        if found[0] == GITLINK:
            folders.insert(0, path)
        else:
            os.unlink(os.path.join(self._root, path))
        for folder in folders:
            try:
                os.rmdir(os.path.join(self._root, folder))
            except OSError:
                return


def parents(path: bytes) -> list[bytes]:
    """The folders above `path`, the nearest first."""
    parts = path.rstrip(b"/").split(b"/")
    return [b"/".join(parts[:end]) for end in range(len(parts) - 1, 0, -1)]


def is_litter(path: bytes) -> bool:
    """Whether `path` is what builds, patch programs and editors leave behind."""
    *folders, name = path.rstrip(b"/").split(b"/")
    return (
        any(folder in _LITTER_FOLDERS for folder in folders)
        or name.endswith(_LITTER_ENDS)
        or (name.startswith(b".#") or (name.startswith(b"#") and name.endswith(b"#")))
    )


def markers(data: bytes) -> list[int]:
    """The numbers (from 1) of lines that are conflict markers."""
    found = []
    for number, line in enumerate(data.split(b"\n"), 1):
        mark = line[:7]
        if mark in _MARKS and (line[7:8] in (b" ", b"", b"\r")):
            found.append(number)
    return found


def write(path: Path, data: bytes, by: Path | None = None) -> None:
    """Write a file of ours, at once, by way of the folder `by`, unless it is so already."""
    try:
        if path.read_bytes() == data:
            return
    except FileNotFoundError:
        pass
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = (by or path.parent) / f"{path.name}.{os.getpid()}"
    beside.write_bytes(data)
    beside.replace(path)


def copy(index: Path, target: Path) -> None:
    """Copy an index with its time: by it git knows which entries it must compare by content."""
    shutil.copy2(index, target)
