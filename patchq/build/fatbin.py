"""Which GPUs the code inside a shared object was compiled for, from its fat binaries' headers.

nvcc puts fat binaries into the sections `.nv_fatbin` and `__nv_relfatbin`: containers one after
the other, each a header and entries, each entry a header and a payload, PTX or a cubin, mostly
packed. NVIDIA publishes no layout. This one is read off what ptxas and fatbinary 13.5 write for
every architecture from sm_80 to sm_121f, and agrees with cuobjdump 13.5 on every shared object of
vLLM 0.32.0's aarch64 wheel (`tests/build/test_spark_wheel.py` asks again):

    container: u32 magic, u16 version, u16 own size, u64 size of what follows
    entry: u16 kind, u16, u32 own size, u64 payload, u32, u32, u16 minor, u16 major, u32 arch,
           u32, u32, u64 flags, ...

`payload` counts the padding; the suffix of `sm_120a` or `sm_120f` stands in the flags alone.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn

from patchq.build import elf
from patchq.build.elf import Elf, Section, Source, bytes_at
from patchq.errors import PatchqError
from patchq.paths import show

SECTIONS = (".nv_fatbin", "__nv_relfatbin")
_MAGIC = 0xBA55ED50
_CONTAINER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQIIHHIIIQ")
_KINDS: dict[int, Literal["ptx", "elf"]] = {1: "ptx", 2: "elf", 16: "elf"}
_EXACT, _FAMILY = 0x100000, 0x200000
_ALIGNED = 8
_BLOCK = 1 << 16
_ARCH = re.compile(r"sm_(\d+)(\d)([af]?)")


@dataclass(frozen=True, slots=True)
class Code:
    """Code for a GPU: `kind` "elf" runs as it is, "ptx" is compiled when it is loaded.

    `arch` as nvcc writes it: `sm_120` for 12.0 and what is compatible, `sm_120f` for its family,
    `sm_120a` for it alone. PTX, too, is called by its `sm_` here, as cuobjdump calls it.
    """

    kind: Literal["elf", "ptx"]
    arch: str

    def runs_on(self, gpu: str) -> bool:
        """Whether a GPU, `sm_121` say, can run it.

        Machine code runs on its own compute capability and later minor ones of the same major;
        PTX on all later ones; what is specific to a family within the family, which is the same
        major for all that exist; what is specific to one architecture on that alone. (CUDA
        Programming Guide, "Cubin Compatibility", "PTX Compatibility" and 5.1.2, "Feature
        Availability".)
        """
        major, minor, suffix = _parts(self.arch)
        asked, exactly, _ = _parts(gpu)
        if suffix == "a":
            return (asked, exactly) == (major, minor)
        if suffix == "f" or self.kind == "elf":
            return asked == major and exactly >= minor
        return (asked, exactly) >= (major, minor)


def architectures(path: Path | Source) -> tuple[Code, ...]:
    """All code in a shared object, each once, sorted; none where it holds no fat binary.

    Raises PatchqError for what is no whole ELF file, or holds a damaged fat binary.
    """
    name = path.name if isinstance(path, Path) else "the file"
    with path.open("rb") if isinstance(path, Path) else nullcontext(path) as source:
        return every(fatbins(source, elf.read(source, name)))


def every(containers: Iterable[frozenset[Code]]) -> tuple[Code, ...]:
    """The code of all these fat binaries, each once, sorted by kind and architecture."""
    found: set[Code] = set().union(*containers)
    return tuple(sorted(found, key=lambda each: (each.kind, *_parts(each.arch))))


def fatbins(source: Source, file: Elf) -> tuple[frozenset[Code], ...]:
    """The code of each fat binary, in the file's order: nvcc makes one of each source file.

    Raises PatchqError where one is damaged.
    """
    return tuple(
        frozenset(found)
        for section in sorted(file.find(*SECTIONS), key=lambda each: each.offset)
        for found in _containers(source, section, file.name)
    )


def _containers(source: Source, section: Section, name: str) -> Iterator[list[Code]]:
    at, end = section.offset, section.offset + section.size
    while at + _CONTAINER.size <= end:
        magic, _, own, size = _CONTAINER.unpack(bytes_at(source, at, _CONTAINER.size, name))
        if not magic:
            at += _filled(source, at, end, name)
            continue
        if magic != _MAGIC or own < _CONTAINER.size or at + own + size > end:
            _damaged(name, at)
        yield list(_entries(source, at + own, at + own + size, name))
        at += own + size
        at += -at % _ALIGNED


def _filled(source: Source, at: int, end: int, name: str) -> int:
    """How many bytes the linker has filled up here, before the next container."""
    data = bytes_at(source, at, min(_BLOCK, end - at), name)
    zeros = len(data) - len(data.lstrip(b"\0"))
    return len(data) if zeros == len(data) else max(_ALIGNED, zeros - zeros % _ALIGNED)


def _entries(source: Source, at: int, end: int, name: str) -> Iterator[Code]:
    while at < end:
        if at + _ENTRY.size > end:
            _damaged(name, at)
        row = _ENTRY.unpack(bytes_at(source, at, _ENTRY.size, name))
        kind, own, payload, arch, flags = row[0], row[2], row[3], row[8], row[11]
        if own < _ENTRY.size or at + own + payload > end:
            _damaged(name, at)
        if kind in _KINDS:
            suffix = "a" if flags & _EXACT else "f" if flags & _FAMILY else ""
            yield Code(_KINDS[kind], f"sm_{arch}{suffix}")
        at += own + payload


def _parts(arch: str) -> tuple[int, int, str]:
    found = _ARCH.fullmatch(arch)
    return (int(found[1]), int(found[2]), found[3]) if found else (0, 0, "")


def _damaged(name: str, at: int) -> NoReturn:
    raise PatchqError(
        f"{show(name)}: the fat binary at byte {at} is damaged",
        "build or download it again; nothing was read from it",
    )
