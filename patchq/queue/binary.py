"""git's binary patches: base85 lines around zlib, either literal or a delta on the old content.

Format: `git help diff` (GIT binary patch) and gitformat-pack (delta instructions).
"""

from __future__ import annotations

import base64
import zlib

from patchq.errors import PatchqError

LIMIT = 1 << 30
"""Largest content a binary patch may unpack to, in bytes."""


def new_content(diff: bytes, old: bytes, where: str) -> bytes:
    """The new content that the first binary section of `diff` makes of `old`.

    Raises PatchqError where the section is damaged or does not fit `old`.
    """
    lines = diff.split(b"\n")
    try:
        at = lines.index(b"GIT binary patch") + 1
        kind, size = lines[at].split(b" ")
        packed = b"".join(_line(line) for line in _until_empty(lines, at + 1))
        data = _inflate(packed, int(size))
        return data if kind == b"literal" else _apply_delta(data, old)
    except (ValueError, IndexError, zlib.error) as error:
        raise PatchqError(
            f"{where}: its binary part is damaged or made for another file ({error})",
            "restore the file from git, or make the patch again",
        ) from error


def _until_empty(lines: list[bytes], at: int) -> list[bytes]:
    end = at
    while end < len(lines) and lines[end]:
        end += 1
    return lines[at:end]


def _line(line: bytes) -> bytes:
    """One line: a letter that says how many bytes it holds (A-Z 1..26, a-z 27..52), then base85."""
    first = line[0]
    count = first - 64 if first <= 90 else first - 70
    return base64.b85decode(line[1:])[:count]


def _inflate(packed: bytes, size: int) -> bytes:
    if not 0 <= size <= LIMIT:
        raise ValueError(f"{size} bytes are too many or too few")
    data = zlib.decompressobj().decompress(packed, size + 1)
    if len(data) != size:
        raise ValueError(f"{size} bytes announced, {len(data)} found")
    return data


def _apply_delta(delta: bytes, old: bytes) -> bytes:
    source, at = _size(delta, 0)
    target, at = _size(delta, at)
    if source != len(old) or target > LIMIT:
        raise ValueError(f"a delta on {source} bytes, the file has {len(old)}")
    out = bytearray()
    while at < len(delta) and len(out) <= target:
        code = delta[at]
        at += 1
        if code & 0x80:
            offset = length = 0
            for bit in range(4):
                if code & (1 << bit):
                    offset |= delta[at] << (8 * bit)
                    at += 1
            for bit in range(3):
                if code & (0x10 << bit):
                    length |= delta[at] << (8 * bit)
                    at += 1
            out += old[offset : offset + (length or 0x10000)]
        else:
            out += delta[at : at + code]
            at += code
    if len(out) != target:
        raise ValueError(f"{target} bytes announced, {len(out)} made")
    return bytes(out)


def _size(delta: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = delta[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at
