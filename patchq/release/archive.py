"""Archives that are the same bytes wherever they are made: tar, sorted, in gzip that packs nothing.

What zlib makes of the same bytes depends on its version, so the blocks are stored (RFC 1951, 3.2.4;
RFC 1952). Dates are the release's, owner and group 0.
"""

from __future__ import annotations

import io
import struct
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from patchq.gitstore.objects import GITLINK, Objects
from patchq.paths import lossless, require_inside

_BLOCK = 65535
_LINK = "120000"
_AT_ONCE = 64


@dataclass(frozen=True)
class Member:
    """A file of an archive: `mode` as git has it (100644, 100755, 120000)."""

    name: str
    mode: str
    data: bytes


class _Gzip(io.RawIOBase):
    """Writes what it is given as a gzip file of stored blocks."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._waiting = bytearray()
        self._crc = self._size = 0
        out.write(b"\x1f\x8b\x08\0\0\0\0\0\0\xff")

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self._crc = zlib.crc32(data, self._crc)
        self._size += len(data)
        self._waiting += data
        while len(self._waiting) > _BLOCK:
            self._put(bytes(self._waiting[:_BLOCK]), last=False)
            del self._waiting[:_BLOCK]
        return len(data)

    def finish(self) -> None:
        self._put(bytes(self._waiting), last=True)
        self._out.write(struct.pack("<LL", self._crc, self._size & 0xFFFFFFFF))

    def _put(self, data: bytes, *, last: bool) -> None:
        self._out.write(struct.pack("<BHH", last, len(data), len(data) ^ 0xFFFF) + data)


def write(path: Path, members: Iterable[Member], seconds: int) -> None:
    """Write the archive `path` of members, which come sorted by name; dated `seconds` (1970)."""
    with path.open("xb") as file:
        packed = _Gzip(file)
        # Stream mode: nothing is sought, so what is large need not lie in memory.
        with tarfile.open(
            fileobj=packed,
            mode="w|",
            format=tarfile.GNU_FORMAT,
            encoding="utf-8",
            errors="surrogateescape",
        ) as tar:
            for member in members:
                info = tarfile.TarInfo(member.name)
                info.mtime = seconds
                info.mode = 0o755 if member.mode == "100755" else 0o644
                if member.mode == _LINK:
                    info.type, info.mode = tarfile.SYMTYPE, 0o777
                    info.linkname = lossless(member.data)
                    tar.addfile(info)
                else:
                    info.size = len(member.data)
                    tar.addfile(info, io.BytesIO(member.data))
        packed.finish()


def of_tree(objects: Objects, tree: str, prefix: str = "") -> Iterator[Member]:
    """The files of a git tree, sorted, below `prefix`; submodules are left out."""
    found = sorted((path, e) for path, e in objects.walk(tree) if e.mode != GITLINK)
    for start in range(0, len(found), _AT_ONCE):
        chunk = found[start : start + _AT_ONCE]
        contents = objects.read_many(entry.oid for _, entry in chunk)
        for (path, entry), (_, _, data) in zip(chunk, contents, strict=True):
            require_inside(path, "the tree")
            yield Member(prefix + lossless(path), entry.mode, data)


def of_files(files: Iterable[tuple[str, Path]]) -> Iterator[Member]:
    """Plain files by the names that they get."""
    for name, path in sorted(files):
        yield Member(name, "100644", path.read_bytes())


def read(path: Path, largest: int) -> dict[str, bytes]:
    """The plain files of a small archive, by name.

    Raises ValueError for what is no archive, or holds more than `largest` bytes.
    """
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(path, "r:gz") as tar:
            for info in tar:
                largest -= info.size
                if largest < 0:
                    raise ValueError("it is too large")
                content = tar.extractfile(info) if info.isreg() else None
                if content is not None:
                    found[info.name] = content.read()
    except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise ValueError(f"it is no whole archive: {error}") from error
    return found
