"""The files of a wheel or of a folder: each gone over once, then read by ranges.

A shared object is packed into hundreds of megabytes. Going over a member gives its hash and keeps
its end, where an ELF file has its section headers; what lies before is unpacked once more, forward.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from patchq.build.wheelfile import CHUNK, DAMAGE, Recorded, Wheel, written
from patchq.errors import PatchqError
from patchq.paths import show

_KEPT = 1 << 20
_MOST = 8 << 30
_AGAIN = "build it again, or download it again"


class Content:
    """The bytes of one file, already gone over: `sha256` as RECORD writes it, `size` in bytes.

    Seeks and reads like a file (patchq.build.elf.Source).
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._at = 0
        self.begin = b""
        total = hashlib.sha256()
        self._end = b""
        self.size = 0
        while chunk := stream.read(CHUNK):
            self.begin = self.begin or chunk[:4]
            total.update(chunk)
            self.size += len(chunk)
            self._end = (self._end + chunk)[-_KEPT:]
        self.sha256 = written(total.digest())

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        self._at = offset + {os.SEEK_CUR: self._at, os.SEEK_END: self.size}.get(whence, 0)
        return self._at

    def read(self, size: int = -1, /) -> bytes:
        size = max(0, self.size - self._at) if size < 0 else size
        start = self.size - len(self._end)
        if self._at >= start:
            data = self._end[self._at - start : self._at - start + size]
        else:
            self._stream.seek(self._at)
            data = self._stream.read(size)
        self._at += len(data)
        return data

    def all(self) -> bytes:
        self.seek(0)
        return self.read()


class WheelFiles:
    """The members of a wheel."""

    def __init__(self, wheel: Wheel) -> None:
        self._wheel = wheel
        self.names = tuple(wheel.members)
        self.record = wheel.record

    @contextmanager
    def open(self, name: str) -> Iterator[Content]:
        """Raises PatchqError for a member that is damaged, whenever that shows."""
        info = self._wheel.members[name]
        told = self.record.get(name)
        if info.file_size > _MOST or (told and told.size != info.file_size):
            raise PatchqError(
                f"{show(name)} is said to have {info.file_size} bytes"
                + (f", and {told.size} by RECORD" if told else ""),
                _AGAIN,
            )
        try:
            with self._wheel.zip.open(info) as stream:
                yield Content(stream)
        except (*DAMAGE, OSError) as error:
            raise PatchqError(f"{show(name)} is damaged: {error}", _AGAIN) from error


class FolderFiles:
    """The files below `root` in the top folders `tops`; no link to a folder is followed."""

    def __init__(self, root: Path, tops: tuple[str, ...], record: dict[str, Recorded]) -> None:
        self._root = root
        self.record = record
        self.names = tuple(sorted(name for top in tops for name in below(root, top)))

    @contextmanager
    def open(self, name: str) -> Iterator[Content]:
        """Raises PatchqError for a file that cannot be read."""
        try:
            with (self._root / name).open("rb") as stream:
                yield Content(stream)
        except OSError as error:
            raise PatchqError(
                f"{show(name)} cannot be read: {error.strerror or error}",
                "correct its permissions, or install it again",
            ) from error


Files = WheelFiles | FolderFiles


def below(root: Path, top: str) -> Iterator[str]:
    """The files below `root/top`, by their paths from `root`; `top` itself where it is a file."""
    if (root / top).is_file():
        yield top
    for folder, _, names in os.walk(root / top):
        for name in names:
            yield (Path(folder) / name).relative_to(root).as_posix()


def differs(name: str, content: Content, record: dict[str, Recorded]) -> bool:
    """Whether the content is not what RECORD says (of what it says nothing, nothing is known)."""
    told = record.get(name)
    if told is None:
        return False
    hashed = told.digest.startswith("sha256=")
    return told.size != content.size or (hashed and told.digest != content.sha256)
