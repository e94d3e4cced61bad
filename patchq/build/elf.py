"""What a shared object says of itself: its machine, sections, needed libraries and symbols.

Read by ranges from anything that seeks, never whole; every offset is checked against the size.
64-bit little-endian files only, as all targets have them. (ELF: System V gABI 4.3, chapters 4
and 5; the numbers of machines and of NVIDIA's: LLVM's BinaryFormat/ELF.h.)
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn, Protocol

from patchq.errors import PatchqError
from patchq.paths import show

MACHINES = {183: "aarch64", 62: "x86_64", 190: "cuda", 3: "x86", 40: "arm", 243: "riscv"}
MAGIC = b"\x7fELF"
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_DYNAMIC = struct.Struct("<qQ")
_NOBITS, _DYNAMIC_KIND, _DYNSYM = 8, 6, 11
_NEEDED, _SONAME = 1, 14
_MOST_SECTIONS = 1 << 20
_MOST_BYTES = 1 << 28
"""A table of names or symbols that claims more than this lies."""


class Source(Protocol):
    """What can be read by ranges: a file, a member of a zip."""

    def seek(self, offset: int, whence: int = 0, /) -> int: ...

    def read(self, size: int = -1, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Section:
    """`offset` and `size` in bytes of the file, `link` the number of a section that it needs."""

    name: str
    kind: int
    offset: int
    size: int
    link: int


@dataclass(frozen=True)
class Elf:
    """`machine` as a wheel's tag names it (a number as text where it has no name here)."""

    name: str
    machine: str
    flags: int
    sections: tuple[Section, ...]

    def find(self, *names: str) -> tuple[Section, ...]:
        """The sections of these names that have bytes in the file."""
        return tuple(each for each in self.sections if each.name in names and each.kind != _NOBITS)


@dataclass(frozen=True)
class Libraries:
    """The shared objects that the loader must find for it, and the name that it gives itself."""

    needed: tuple[str, ...]
    soname: str


@dataclass(frozen=True)
class Symbols:
    """The names that it offers to the loader, and those that it asks for."""

    defined: frozenset[str]
    undefined: frozenset[str]


def read(source: Source, name: str) -> Elf:
    """The headers of `source`; `name` is what a sentence calls it.

    Raises PatchqError for what is no 64-bit little-endian ELF file, or ends before its sections.
    """
    size = source.seek(0, os.SEEK_END)
    head = bytes_at(source, 0, min(size, _HEADER.size), name)
    if not head.startswith(MAGIC):
        _damaged(name, "it does not begin as an ELF file does")
    if len(head) < _HEADER.size or head[4:6] != b"\x02\x01":
        _damaged(name, "it is not a 64-bit little-endian ELF file")
    _, _, machine, _, _, _, start, flags, _, _, _, each, count, names = _HEADER.unpack(head)
    rows: list[tuple[int, ...]] = []
    if start:
        if each != _SECTION.size:
            _damaged(name, f"its section headers have {each} bytes instead of {_SECTION.size}")
        if not count:
            first = _SECTION.unpack(_within(source, start, each, size, name))
            count, names = first[5], first[6] if names == 0xFFFF else names
        if count > _MOST_SECTIONS:
            _damaged(name, f"it claims {count} sections")
        rows = list(_SECTION.iter_unpack(_within(source, start, each * count, size, name)))
    if rows and names >= len(rows):
        _damaged(name, "its section names are in a section that it does not have")
    table = _within(source, rows[names][4], rows[names][5], size, name) if rows else b""
    sections = []
    for row in rows:
        if row[1] not in (0, _NOBITS) and row[4] + row[5] > size:
            _damaged(name, f"a section ends at byte {row[4] + row[5]} of {size}")
        sections.append(Section(_text(table, row[0]), row[1], row[4], row[5], row[6]))
    return Elf(name, MACHINES.get(machine, str(machine)), flags, tuple(sections))


def libraries(source: Source, elf: Elf) -> Libraries:
    """Raises PatchqError where what the loader is told is damaged."""
    needed: list[str] = []
    soname = ""
    for names, rows in _tables(source, elf, _DYNAMIC_KIND, _DYNAMIC):
        for tag, value in rows:
            if tag == _NEEDED:
                needed.append(_text(names, value))
            elif tag == _SONAME:
                soname = _text(names, value)
    return Libraries(tuple(needed), soname)


def symbols(source: Source, elf: Elf) -> Symbols:
    """Raises PatchqError where the table of dynamic symbols is damaged."""
    defined: set[str] = set()
    undefined: set[str] = set()
    for names, rows in _tables(source, elf, _DYNSYM, _SYMBOL):
        for at, _, _, section, _, _ in rows:
            (defined if section else undefined).add(_text(names, at))
    return Symbols(frozenset(defined - {""}), frozenset(undefined - {""}))


def _tables(
    source: Source, elf: Elf, kind: int, form: struct.Struct
) -> Iterator[tuple[bytes, Iterator[tuple[int, ...]]]]:
    """The rows of each section of this kind, with the names that they point into."""
    for section in elf.sections:
        if section.kind != kind:
            continue
        if section.link >= len(elf.sections):
            _damaged(elf.name, f"{section.name} names a section that is not there")
        data = content(source, elf, section)
        names = content(source, elf, elf.sections[section.link])
        yield names, form.iter_unpack(data[: len(data) - len(data) % form.size])


def bytes_at(source: Source, offset: int, size: int, name: str) -> bytes:
    """Exactly these bytes. Raises PatchqError where the file ends before."""
    source.seek(offset)
    data = source.read(size)
    if len(data) < size:
        _damaged(name, f"it ends before byte {offset + size}")
    return data


def _within(source: Source, offset: int, size: int, whole: int, name: str) -> bytes:
    if offset + size > whole or size > _MOST_BYTES:
        _damaged(name, f"it names bytes {offset} to {offset + size} and has {whole}")
    return bytes_at(source, offset, size, name)


def content(source: Source, elf: Elf, section: Section) -> bytes:
    """The section's bytes, none where it has none in the file. Raises PatchqError as `read`."""
    if section.kind == _NOBITS:
        return b""
    return _within(source, section.offset, section.size, section.offset + section.size, elf.name)


def _text(table: bytes, at: int) -> str:
    end = table.find(b"\0", at) if at < len(table) else -1
    return table[at:end].decode("utf-8", "backslashreplace") if end >= 0 else ""


def _damaged(name: str, why: str) -> NoReturn:
    raise PatchqError(
        f"{show(name)} is not a whole shared object: {why}",
        "build or download it again; nothing was read from it",
    )
