"""What a shared object says of itself, and what is none."""

from __future__ import annotations

import io
import struct
import sys
import sysconfig
from contextlib import suppress
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given
from hypothesis import strategies as st

from patchq.build import elf
from patchq.errors import PatchqError
from tests.build.elves import AARCH64, X86_64, fatbin, shared

SOUND = shared(
    AARCH64,
    defines=["PyInit__C", "grün"],
    asks=["cudaMalloc"],
    needs=["libcudart.so.13", "libc.so.6"],
    strings=["rms_norm(Tensor x) -> ()"],
    fatbins=[fatbin("sm_121a")],
)


def test_a_shared_object_says_what_it_is() -> None:
    source = io.BytesIO(SOUND)
    file = elf.read(source, "_C.so")
    assert file.machine == "aarch64"
    assert [each.name for each in file.sections][1:3] == [".dynsym", ".dynstr"]
    assert elf.symbols(source, file).defined == {"PyInit__C", "grün"}
    assert elf.symbols(source, file).undefined == {"cudaMalloc"}
    assert elf.libraries(source, file).needed == ("libcudart.so.13", "libc.so.6")
    (strings,) = file.find(".rodata")
    assert b"rms_norm(Tensor x)" in elf.content(source, file, strings)
    assert elf.read(io.BytesIO(shared(X86_64)), "_C.so").machine == "x86_64"
    assert elf.read(io.BytesIO(shared(21)), "_C.so").machine == "21"


def libraries() -> list[Path]:
    """Real ones: those that this Python itself has loaded or brings."""
    folder = Path(sysconfig.get_path("platstdlib")) / "lib-dynload"
    return [*sorted(folder.glob("*.so"))[:8], Path(sys.executable).resolve()]


@pytest.mark.parametrize("path", libraries(), ids=lambda path: path.name)
def test_pyelftools_reads_the_same(path: Path) -> None:
    with path.open("rb") as source:
        ours = elf.read(source, path.name)
        symbols, told = elf.symbols(source, ours), elf.libraries(source, ours)
        theirs = ELFFile(source)
        assert [each.name for each in ours.sections] == [
            each.name for each in theirs.iter_sections()
        ]
        rows = [
            (each.name, each["st_shndx"])
            for each in theirs.get_section_by_name(".dynsym").iter_symbols()
        ]
        assert symbols.defined == {name for name, where in rows if name and where != "SHN_UNDEF"}
        assert symbols.undefined == {name for name, where in rows if name and where == "SHN_UNDEF"}
        tags = list(theirs.get_section_by_name(".dynamic").iter_tags())
        assert list(told.needed) == [tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"]
        assert [told.soname] == (
            [tag.soname for tag in tags if tag.entry.d_tag == "DT_SONAME"] or [""]
        )


def test_more_sections_than_the_header_can_count() -> None:
    """Their number then stands in the first one, which is none (gABI, e_shnum)."""
    start, count = struct.unpack("<Q", SOUND[40:48])[0], struct.unpack("<H", SOUND[60:62])[0]
    data = bytearray(SOUND)
    data[60:62] = bytes(2)
    data[start + 32 : start + 40] = struct.pack("<Q", count)
    many, few = (elf.read(io.BytesIO(each), "x").sections for each in (data, SOUND))
    assert many[1:] == few[1:]
    data[start + 32 : start + 40] = struct.pack("<Q", 1 << 40)
    with pytest.raises(PatchqError, match=r"claims \d+ sections"):
        elf.read(io.BytesIO(data), "_C.so")


def test_a_section_that_ends_behind_the_file() -> None:
    start = struct.unpack("<Q", SOUND[40:48])[0] + 64
    data = bytearray(SOUND)
    data[start + 32 : start + 40] = struct.pack("<Q", 1 << 40)
    with pytest.raises(PatchqError, match="a section ends at byte"):
        elf.read(io.BytesIO(data), "_C.so")
    data = bytearray(SOUND)
    data[start + 40 : start + 44] = struct.pack("<I", 99)
    source = io.BytesIO(data)
    file = elf.read(source, "_C.so")
    with pytest.raises(PatchqError, match="names a section that is not there"):
        elf.symbols(source, file)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "does not begin as an ELF file does"),
        (b"#!/bin/sh\n", "does not begin as an ELF file does"),
        (SOUND[:40], "not a 64-bit little-endian"),
        (b"\x7fELF\x01" + SOUND[5:], "not a 64-bit little-endian"),
        (b"\x7fELF\x02\x02" + SOUND[6:], "not a 64-bit little-endian"),
        (SOUND[:-10], r"names bytes \d+ to \d+ and has \d+"),
        (SOUND[:40] + struct.pack("<Q", 1 << 60) + SOUND[48:], "names bytes"),
        (SOUND[:58] + struct.pack("<H", 40) + SOUND[60:], "section headers have 40 bytes"),
        (SOUND[:62] + struct.pack("<H", 99) + SOUND[64:], "in a section that it does not have"),
    ],
)
def test_what_is_none(data: bytes, why: str) -> None:
    with pytest.raises(PatchqError, match=why) as raised:
        elf.read(io.BytesIO(data), "bad\x1b.so")
    assert "\x1b" not in raised.value.message


@given(
    st.lists(st.tuples(st.integers(0, len(SOUND) - 1), st.integers(0, 255)), max_size=6),
    st.integers(0, 200),
)
def test_damage_is_said_and_never_our_bug(changes: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(SOUND)
    for at, value in changes:
        data[at] = value
    source = io.BytesIO(data[: len(data) - cut])
    with suppress(PatchqError):
        file = elf.read(source, "_C.so")
        elf.symbols(source, file)
        elf.libraries(source, file)
