"""Small shared objects and fat binaries, byte for byte as toolchains lay them out."""

from __future__ import annotations

import importlib.metadata
import struct
from collections.abc import Sequence
from pathlib import Path

AARCH64, X86_64 = 183, 62
_FLAGS = {"": 0, "a": 0x100000, "f": 0x200000}


def shared(
    machine: int = AARCH64,
    *,
    defines: Sequence[str] = (),
    asks: Sequence[str] = (),
    needs: Sequence[str] = (),
    strings: Sequence[str] = (),
    fatbins: Sequence[bytes] = (),
    fill: int = 0,
) -> bytes:
    """A 64-bit shared object. `fill`: bytes without meaning before its section headers."""
    table = bytearray(b"\0")

    def name(text: str) -> int:
        table.extend(text.encode() + b"\0")
        return len(table) - len(text.encode()) - 1

    symbols = bytes(24)
    for each, section in [*((x, 1) for x in defines), *((x, 0) for x in asks)]:
        symbols += struct.pack("<IBBHQQ", name(each), 0x12, 0, section, 0, 0)
    dynamic = b"".join(struct.pack("<qQ", 1, name(each)) for each in needs) + bytes(16)
    # As a linker does it: each container begins at a multiple of eight.
    fat = b"".join(each + bytes(-len(each) % 8) for each in fatbins)
    parts = [
        (".dynsym", 11, symbols, 2),
        (".dynstr", 3, bytes(table), 0),
        (".rodata", 1, b"\0".join(each.encode() for each in ("", *strings, "")), 0),
        (".nv_fatbin", 1, fat, 0),
        (".filled", 1, bytes(fill), 0),
        (".dynamic", 6, dynamic, 2),
    ]
    names = b"\0" + b"".join(each.encode() + b"\0" for each, *_ in parts) + b".shstrtab\0"
    parts.append((".shstrtab", 3, names, 0))
    at, body, rows = 64, b"", bytes(64)
    for section, kind, data, link in parts:
        where = names.index(section.encode() + b"\0")
        rows += struct.pack("<IIQQQQIIQQ", where, kind, 0, 0, at, len(data), link, 0, 8, 0)
        padded = data + bytes(-len(data) % 8)
        body, at = body + padded, at + len(padded)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    count = len(parts) + 1
    head = struct.pack(
        "<16sHHIQQQIHHHHHH", ident, 3, machine, 1, 0, 0, at, 0, 64, 0, 0, 64, count, count - 1
    )
    return head + body + rows


def cuobjdump() -> Path:
    """NVIDIA's own reader, from the package nvidia-cuda-cuobjdump."""
    files = importlib.metadata.files("nvidia-cuda-cuobjdump") or []
    (program,) = (file for file in files if file.name == "cuobjdump")
    return Path(program.locate())


def fatbin(*codes: str) -> bytes:
    """A container for codes like `sm_120f` and `ptx sm_80`, as fatbinary 13.5 writes them."""
    entries = b"".join(_entry(code) for code in codes)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries


def _entry(code: str) -> bytes:
    ptx = code.startswith("ptx ")
    arch = code.rpartition("_")[2]
    suffix = arch.lstrip("0123456789")
    number = int(arch.removesuffix(suffix))
    payload = (b".version 9.0\n.target sm_" + arch.encode() if ptx else b"\x7fELF cubin").ljust(
        40, b"\0"
    )
    own = 80 if ptx else 112 if number >= 100 else 64
    flags = 0x11 | _FLAGS[suffix] | (0x1000000 if number >= 100 and not ptx else 0)
    head = struct.pack(
        "<HHIQIIHHIIIQQQ", 1 if ptx else 2, 0x101, own, len(payload), 0, 64 if own > 64 else 0,
        0 if ptx else 8, 9 if ptx else 1, number, 0, 0, flags, 0, 0,
    )  # fmt: skip
    return head + bytes(own - 64) + payload
