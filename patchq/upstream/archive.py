"""Source archives, read without trusting them: members in, nothing is written to the disk.

`gzip` and `tarfile` read them; here stands what they let pass and patchq does not.
"""

from __future__ import annotations

import gzip
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple, NoReturn

from patchq.errors import PatchqError
from patchq.paths import is_inside, show
from patchq.upstream.generated import is_generated, named_commit

MIB = 1 << 20
_MAX_EXTENSION = 16 << 10
"""Bytes of a pax or GNU long-name header: tarfile's patterns take quadratic time on them."""
_EXTENSIONS = (b"x", b"g", b"X", b"L", b"K")
_DAMAGE = (
    tarfile.TarError,
    gzip.BadGzipFile,
    zlib.error,
    EOFError,
    # What hostile headers bring `tarfile` to: odd numbers, a thousand extensions in a row.
    ValueError,
    OverflowError,
    RecursionError,
)
_KINDS = {
    tarfile.LNKTYPE: "a hard link",
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.CHRTYPE: "a character device",
    tarfile.BLKTYPE: "a block device",
    tarfile.FIFOTYPE: "a named pipe",
    tarfile.GNUTYPE_SPARSE: "a sparse file",
}


class Member(NamedTuple):
    """A file of the tree: `path` without the archive's top folder, `/` between components."""

    path: bytes
    executable: bool
    data: bytes


@dataclass(frozen=True)
class Limits:
    """What an archive may hold; all sizes in bytes.

    `ratio` bounds unpacked by packed size once more than `free` bytes are unpacked. A file
    is held in memory whole: GitHub takes none larger than `file` into a repository either.
    """

    members: int = 200_000
    total: int = 4096 * MIB
    file: int = 100 * MIB
    ratio: int = 200
    free: int = 64 * MIB
    path: int = 4096
    component: int = 255


DEFAULT_LIMITS = Limits()


class ArchiveReader:
    """Iterate over it once for the files of the archive's tree, in its order.

    What packaging added to the tag's tree is left out and listed in `left_out`; `commit` is the
    hash that it names, perhaps abbreviated.

    Raises PatchqError, from the iteration, for everything that is not a plain tree of files below
    one top folder, is damaged, or exceeds the limits.
    """

    def __init__(self, path: Path, *, limits: Limits = DEFAULT_LIMITS) -> None:
        self.path = path
        self.limits = limits
        self.commit: str | None = None
        self.left_out: list[bytes] = []
        self._files: set[bytes] = set()
        self._folders: set[bytes] = set()
        self._top = b""

    def __iter__(self) -> Iterator[Member]:
        try:
            with self.path.open("rb") as file, gzip.GzipFile(fileobj=file) as stream:
                for member in self._read(file, stream):
                    if is_generated(member.path, member.data):
                        self.left_out.append(member.path)
                        self.commit = self.commit or named_commit(member.data)
                    else:
                        yield member
        except _DAMAGE as error:
            self._damaged(str(error), error)
        except OSError as error:
            raise PatchqError(
                f"{self.path} cannot be read: {error.strerror or error}",
                "check the file and its permissions",
            ) from error

    def _read(self, file: BinaryIO, stream: gzip.GzipFile) -> Iterator[Member]:
        """All files, at last making sure that the archive is whole."""
        tar = tarfile.TarFile(
            fileobj=stream, tarinfo=_Header, encoding="utf-8", errors="surrogateescape"
        )
        for count, info in enumerate(tar, 1):
            name = info.name.encode("utf-8", "surrogateescape")
            if count > self.limits.members:
                self._refuse(name, f"is one too many: more than {self.limits.members}")
            self._check(name, info)
            if tar.pax_headers.keys() & {"path", "size"}:
                self._refuse(name, "is named or sized by a header for all members")
            if name.endswith(b"/.git") and stream.read(info.size).startswith(b"gitdir: "):
                # Where a submodule was checked out (apache-tvm-ffi 0.1.11); git would not have it.
                self.left_out.append(name.partition(b"/")[2])
                continue
            path = self._admit(name, info.isdir())
            data = stream.read(info.size)
            self._check_ratio(file, stream)
            if len(data) < info.size:
                self._damaged("it is cut off")
            if not info.isdir():
                yield Member(path, bool(info.mode & 0o100), data)
        while rest := stream.read(MIB):
            self._check_ratio(file, stream)
            if rest.strip(b"\0"):
                self._damaged("there is more after its end")
        if not self._top:
            self._damaged("it holds no files")

    def _check(self, name: bytes, info: tarfile.TarInfo) -> None:
        kind = info.type
        if any(key.startswith("GNU.sparse") for key in info.pax_headers):
            kind = tarfile.GNUTYPE_SPARSE
        if kind not in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE):
            self._refuse(name, f"is {_KINDS.get(kind, 'of an unknown kind')}, not a file")
        # tarfile takes what is no number for 0.
        if info.size < 0 or info.pax_headers.get("size", str(info.size)) != str(info.size):
            self._refuse(name, "has a size that is not a number")
        if info.isdir() and info.size:
            self._refuse(name, "is a folder with content")
        if info.size > self.limits.file:
            self._refuse(name, f"is larger than {self.limits.file // MIB} MiB")

    def _check_ratio(self, file: BinaryIO, stream: gzip.GzipFile) -> None:
        packed = file.tell()
        allowed = min(self.limits.total, max(self.limits.free, self.limits.ratio * packed))
        if stream.tell() > allowed:
            raise PatchqError(
                f"{self.path.name} unpacks to more than {allowed // MIB} MiB from its first"
                f" {packed // 1024} KiB: it looks like a decompression bomb",
                "nothing was taken from the archive; tell those who publish it",
            )

    def _admit(self, name: bytes, folder: bool) -> bytes:
        """The path below the top folder; empty for that folder itself."""
        name = name.removeprefix(b"./")
        if folder and name in (b"", b"."):
            return b""
        if max(map(len, name.split(b"/"))) > self.limits.component or len(name) > self.limits.path:
            self._refuse(name, "has a name that is too long")
        if not is_inside(name):
            self._refuse(name, "has a name that leaves its folder, is none or is git's own")
        top, _, path = name.partition(b"/")
        if not (path or folder):
            self._refuse(name, "stands outside the archive's top folder")
        if self._top and top != self._top:
            self._refuse(name, f"stands outside the archive's top folder '{show(self._top)}'")
        self._top = top
        if not folder:
            if name in self._files:
                self._refuse(name, "stands in it twice")
            if name in self._folders:
                self._refuse(name, "is a file and a folder")
            self._files.add(name)
        above = name if folder else name.rpartition(b"/")[0]
        while above and above not in self._folders:
            if above in self._files:
                self._refuse(name, f"needs '{show(above)}' to be a file and a folder")
            self._folders.add(above)
            above = above.rpartition(b"/")[0]
        return path

    def _refuse(self, name: bytes, what: str) -> NoReturn:
        raise PatchqError(
            f"{self.path.name}: the member '{show(name):.200}' {what}",
            "nothing was taken from the archive; tell those who publish it, or use a git source",
        )

    def _damaged(self, what: str, error: Exception | None = None) -> NoReturn:
        raise PatchqError(
            f"{self.path} is not a whole .tar.gz archive: {what}",
            "delete it and run again, so that it is downloaded afresh",
        ) from error


class _Header(tarfile.TarInfo):
    """A header that `tarfile` neither forgives nor reads without bound for."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Header:
        try:
            header = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if buf == bytes(tarfile.BLOCKSIZE):
                raise
            # `TarFile.next` takes a HeaderError for the archive's end, this one not.
            raise tarfile.ReadError(str(error)) from error
        if header.type in _EXTENSIONS and not 0 <= header.size <= _MAX_EXTENSION:
            raise tarfile.ReadError(f"it has an extension header of {header.size} bytes")
        return header

    # Maps of sparse files may be endless. The file is refused by its kind.

    def _proc_sparse(self, _tar: tarfile.TarFile) -> _Header:
        return self

    def _proc_gnusparse_10(self, *_: object) -> None:
        return
