"""Write a wheel from another one: what stays is copied as it is packed, byte for byte.

Nothing in the result depends on the clock, the machine or the versions of anything: members keep
upstream's bytes, new ones have a fixed date, mode and packing. (Wheels: PEP 427; RECORD: the
packaging specification "Recording installed projects"; zip: APPNOTE 6.3.10, sections 4.3 and 4.4.)
"""

from __future__ import annotations

import base64
import hashlib
import os
import struct
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from patchq.errors import PatchqError
from patchq.paths import is_inside, show

DATE = (1980, 1, 1, 0, 0, 0)
CHUNK = 1 << 20
_LOCAL = struct.Struct("<4s5H3L2H")
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)


@dataclass(frozen=True, slots=True)
class Recorded:
    """One line of RECORD: `digest` as it stands there (`sha256=...`), `size` in bytes."""

    digest: str
    size: int


class Wheel:
    """A wheel, read without trusting it. Use as a context manager.

    Raises PatchqError for what is no whole wheel or has a member that leaves its folder, stands
    twice, or is not recorded.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.zip = zipfile.ZipFile(path)
        except DAMAGE as error:
            raise self._damaged(str(error)) from error
        self.members = {info.filename: info for info in self._sound()}
        self.info = self._info()
        self.record = self._record()

    def __enter__(self) -> Wheel:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.zip.close()

    def read(self, name: str) -> bytes:
        """A member's content, checked against the checksum that the wheel states."""
        try:
            return self.zip.read(self.members[name])
        except (*DAMAGE, OSError) as error:
            raise self._damaged(f"{show(name)}: {error}") from error

    def packed(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        """A member's content as it is packed."""
        with self.path.open("rb") as file:
            file.seek(info.header_offset)
            head = file.read(_LOCAL.size)
            try:
                mark, *_, name, extra = _LOCAL.unpack(head)
            except struct.error as error:
                raise self._damaged(f"{show(info.filename)}: {error}") from error
            if mark != b"PK\x03\x04":
                raise self._damaged(f"{show(info.filename)} is not where its directory says")
            file.seek(info.header_offset + _LOCAL.size + name + extra)
            left = info.compress_size
            while left:
                chunk = file.read(min(CHUNK, left))
                if not chunk:
                    raise self._damaged(f"{show(info.filename)} ends early")
                left -= len(chunk)
                yield chunk

    def _sound(self) -> Iterator[zipfile.ZipInfo]:
        seen: set[str] = set()
        for info in self.zip.infolist():
            name = info.filename
            if info.is_dir():
                continue
            if not is_inside(name.encode("utf-8", "surrogateescape")) or name in seen:
                raise self._damaged(
                    f"the member '{show(name):.200}' leaves its folder or stands twice"
                )
            seen.add(name)
            yield info

    def _info(self) -> str:
        tops = {name.partition("/")[0] for name in self.members}
        infos = [top for top in tops if top.endswith(".dist-info")]
        if len(infos) != 1 or not {f"{infos[0]}/RECORD", f"{infos[0]}/METADATA"} <= set(
            self.members
        ):
            raise self._damaged("it has no one .dist-info with METADATA and RECORD")
        return infos[0]

    def _record(self) -> dict[str, Recorded]:
        try:
            found = recorded(self.read(f"{self.info}/RECORD"))
        except ValueError as error:
            raise self._damaged(f"its RECORD cannot be read: {error}") from error
        missing = sorted(set(self.members) - set(found) - {f"{self.info}/RECORD"})
        if missing:
            raise self._damaged(f"its RECORD does not name {show(missing[0])}")
        return found

    def _damaged(self, why: str) -> PatchqError:
        return PatchqError(
            f"{self.path.name} is not a whole wheel: {why}",
            "delete it and run again, so that it is downloaded afresh",
        )


@dataclass
class Writer:
    """Write `target` from `source`: keep, put, and close with a RECORD."""

    source: Wheel
    target: Path
    info: str
    rows: dict[str, Recorded] = field(default_factory=dict)

    def write(self, names: Mapping[str, str], new: Mapping[str, bytes]) -> None:
        """`names`: members that stay, and what they are called now; `new`: contents by name.

        The order is upstream's, new members after it by name, RECORD last. Members that are
        executable stay so.
        """
        with zipfile.ZipFile(self.target, "w") as out:
            for info in self.source.members.values():
                name = names.get(info.filename)
                if name is not None and name not in new:
                    self._keep(out, info, name)
            for name in sorted(new):
                self._put(out, name, new[name])
            record = f"{self.info}/RECORD"
            lines = [f"{_quoted(k)},{v.digest},{v.size}\n" for k, v in self.rows.items()]
            self._put(out, record, "".join([*lines, f"{record},,\n"]).encode())
        with self.target.open("rb") as file:
            os.fsync(file.fileno())

    def _keep(self, out: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> None:
        copy = zipfile.ZipInfo(name, info.date_time)
        copy.compress_type = info.compress_type
        copy.external_attr = info.external_attr
        copy.create_system = 3
        copy.CRC = info.CRC
        copy.compress_size = info.compress_size
        copy.file_size = info.file_size
        # zipfile packs what it is given; to copy what is packed already its parts are used.
        assert out.fp is not None
        out.fp.seek(out.start_dir)
        copy.header_offset = out.fp.tell()
        out.fp.write(copy.FileHeader(zip64=False))
        for chunk in self.source.packed(info):
            out.fp.write(chunk)
        out.filelist.append(copy)
        out.NameToInfo[name] = copy
        out.start_dir = out.fp.tell()
        out._didModify = True  # type: ignore[attr-defined]
        self.rows[name] = self.source.record[info.filename]

    def _put(self, out: zipfile.ZipFile, name: str, data: bytes) -> None:
        info = zipfile.ZipInfo(name, DATE)
        # Not packed: another zlib packs the same bytes otherwise.
        info.compress_type = zipfile.ZIP_STORED
        info.create_system = 3
        old = self.source.members.get(name)
        runs = old is not None and bool(old.external_attr >> 16 & 0o111)
        info.external_attr = (0o100755 if runs else 0o100644) << 16
        out.writestr(info, data)
        if not name.endswith(".dist-info/RECORD"):
            self.rows[name] = Recorded(digest(data), len(data))


def overlaid(
    source: Wheel,
    made: Path,
    info: str,
    fresh: Mapping[str, bytes],
    removed: Collection[str] = (),
) -> str:
    """Write `made`: `source` with `fresh` over it and without `removed`; its sha256.

    `info` is what its .dist-info is called; `fresh` holds the new METADATA. The file appears once
    it is whole.
    """
    old = f"{source.info}/"
    names = {
        name: f"{info}/{name.removeprefix(old)}" if name.startswith(old) else name
        for name in source.members
        if name not in removed and name not in (f"{old}RECORD", f"{old}METADATA")
    }
    made.parent.mkdir(parents=True, exist_ok=True)
    beside = made.with_name(f".{made.name}.{os.getpid()}")
    try:
        Writer(source, beside, info).write(names, fresh)
        with beside.open("rb") as file:
            total = hashlib.file_digest(file, "sha256").hexdigest()
        os.replace(beside, made)
    finally:
        beside.unlink(missing_ok=True)
    return total


def recorded(record: bytes) -> dict[str, Recorded]:
    """The lines of a RECORD that state a size, by path. Raises ValueError for what is no CSV."""
    import csv

    found: dict[str, Recorded] = {}
    try:
        for row in csv.reader(record.decode("utf-8", "replace").splitlines()):
            if len(row) == 3 and row[2].isdecimal():
                found[row[0]] = Recorded(row[1], int(row[2]))
    except csv.Error as error:
        raise ValueError(str(error)) from error
    return found


def digest(data: bytes) -> str:
    """`data`'s hash as RECORD writes it."""
    return written(hashlib.sha256(data).digest())


def written(sha256: bytes) -> str:
    """A sha256 as RECORD writes it."""
    return "sha256=" + base64.urlsafe_b64encode(sha256).rstrip(b"=").decode()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if set(name) & set(',"\r\n') else name
