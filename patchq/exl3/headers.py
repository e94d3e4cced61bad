"""safetensors headers, read from strangers' files without trusting a word.

A file is an 8-byte little-endian length, a JSON object of that length, then the data. Each
entry names dtype, shape and [begin, end) in the data; together the entries must cover the data
without gap or overlap, which is what the reference implementation asks as well.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable
from operator import itemgetter
from pathlib import Path
from typing import Any, NoReturn

from patchq.errors import PatchqError
from patchq.exl3.model import Shard, Tensor

MAX_HEADER = 100_000_000
"""The reference implementation's limit, in bytes."""

BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32,
    "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip
"""Bits of one element, by dtype."""
AGAIN = "download the file again"


class BadFile(PatchqError):
    """A file of the checkpoint is damaged or lies about itself."""


def read_shard(folder: Path, file: str) -> Shard:
    """The checked header of `folder/file`. Raises BadFile, one sentence with names and numbers."""
    path = folder / file
    try:
        real = Path(os.path.realpath(path, strict=True))
        # What is no file must not make us wait for what is put into it.
        descriptor = os.open(real, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as problem:
        nothing = isinstance(problem, FileNotFoundError) and path.is_symlink()
        why = "points to nothing" if nothing else problem.strerror or "cannot be opened"
        raise BadFile(f"{file}: {why}", AGAIN) from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise BadFile(f"{file} is no file", AGAIN)
        size = found.st_size
        raw = _header_bytes(descriptor, size, file)
    finally:
        os.close(descriptor)
    data = 8 + len(raw)
    metadata, tensors = parse(raw, file, data, size)
    digest = hashlib.sha256(raw).hexdigest()
    return Shard(file, real, size, data, metadata, tensors, digest)


def _header_bytes(descriptor: int, size: int, file: str) -> bytes:
    start = os.pread(descriptor, 8, 0)
    if len(start) < 8:
        raise BadFile(f"{file} has {size} bytes: it is no safetensors file", AGAIN)
    length = int.from_bytes(start, "little")
    if length > MAX_HEADER:
        raise BadFile(
            f"{file} announces a header of {length} bytes, more than any may have ({MAX_HEADER})",
            AGAIN,
        )
    if 8 + length > size:
        raise BadFile(
            f"{file} announces a header of {length} bytes but has only {size} in all", AGAIN
        )
    raw = os.pread(descriptor, length, 8)
    while len(raw) < length:
        more = os.pread(descriptor, length - len(raw), 8 + len(raw))
        if not more:
            raise BadFile(f"{file} became shorter while it was read", "run it again")
        raw += more
    return raw


def parse(raw: bytes, file: str, data: int, size: int) -> tuple[dict[str, str], tuple[Tensor, ...]]:
    """The header `raw` of a file of `size` bytes whose data begins at `data`.

    Returns its metadata and its tensors in the order of their bytes. Raises BadFile.
    """
    try:
        header = json.loads(raw.decode("utf-8"), parse_float=_refuse, parse_constant=_refuse)
        if b"true" in raw or b"false" in raw:
            # These are equal to 1 and 0 wherever they stand; nothing else that is no number is.
            json.loads(raw, object_hook=_refuse_truth)
    except (ValueError, RecursionError) as problem:
        raise BadFile(f"{file}: its header is no JSON ({_short(problem)})", AGAIN) from None
    if not isinstance(header, dict):
        raise BadFile(f"{file}: its header is no JSON object", AGAIN)
    metadata = header.pop("__metadata__", None)
    _check_metadata(metadata, file)
    tensors = []
    place, in_order = 0, True
    known: dict[tuple[str, tuple[int, ...]], tuple[int, tuple[int, ...]]] = {}
    make = tuple.__new__
    # 150,000 rounds for a large checkpoint: nothing is asked twice here.
    for name, entry in header.items():
        try:
            dtype, shape = entry["dtype"], tuple(entry["shape"])
            begin, end = entry["data_offsets"]
            found = known.get((dtype, shape))
            if found is None:
                found = known[dtype, shape] = _bits(dtype, shape), shape
            if type(begin) is not int or type(end) is not int or not 0 <= begin <= end:
                raise ValueError
            if found[0] != 8 * (end - begin):
                raise ValueError
            if begin != place:
                in_order = False
            place = end
            tensors.append(make(Tensor, (name, dtype, found[1], file, data + begin, data + end)))
        except (TypeError, ValueError, KeyError):
            raise BadFile(f"{file}: {_what_is_wrong(name, entry)}", AGAIN) from None
    _check_duplicates(raw, header, metadata, file)
    if not in_order:
        tensors.sort(key=itemgetter(4, 5))
    if not in_order or data + place != size:
        _check_cover(tensors, file, data, size)
    return metadata or {}, tuple(tensors)


def _bits(dtype: str, shape: tuple[int, ...]) -> int:
    """Bits of a tensor. Raises ValueError, KeyError where they are none."""
    bits = BITS[dtype]
    for extent in shape:
        # A text or a list would multiply, too: to a full memory.
        if type(extent) is not int or extent < 0:
            raise ValueError
        bits *= extent
    return bits


def _refuse(number: str) -> NoReturn:
    msg = f"the number {number[:40]}"
    raise ValueError(msg)


def _refuse_truth(values: dict[str, Any]) -> None:
    for value in values.values():
        if isinstance(value, list) and any(isinstance(each, bool) for each in value):
            msg = "true or false in the place of a number"
            raise ValueError(msg)


def _check_metadata(metadata: Any, file: str) -> None:
    if metadata is not None and not (
        isinstance(metadata, dict) and all(isinstance(value, str) for value in metadata.values())
    ):
        raise BadFile(f"{file}: its __metadata__ is no object of strings", AGAIN)


def _check_duplicates(
    raw: bytes, header: dict[str, Any], metadata: dict[str, str] | None, file: str
) -> None:
    """No name comes twice, no entry has more than dtype, shape and data_offsets.

    Each entry that was seen accounts for four colons, and nothing that was parsed can have
    fewer: an equal count leaves no room for another key. Otherwise (names with colons) look.
    """
    colons = 4 * len(header) + (0 if metadata is None else 1 + len(metadata))
    if raw.count(b":") == colons:
        return

    def refuse(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        seen = dict(pairs)
        if len(seen) != len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise BadFile(f"{file}: its header names {twice} twice", AGAIN)
        return seen

    json.loads(raw, object_pairs_hook=refuse)
    for name, entry in header.items():
        if len(entry) != 3:
            raise BadFile(f"{file}: {_what_is_wrong(name, entry)}", AGAIN)


def _check_cover(tensors: list[Tensor], file: str, data: int, size: int) -> None:
    place = data
    before = None
    for tensor in tensors:
        if tensor.start != place:
            if tensor.start < place and before is not None:
                raise BadFile(
                    f"{file}: {tensor.name} overlaps {before.name}"
                    f" (it begins at byte {tensor.start}, the other ends at {place})",
                    AGAIN,
                )
            raise BadFile(
                f"{file}: bytes {place} to {tensor.start} before {tensor.name} belong to nothing",
                AGAIN,
            )
        place = tensor.end
        before = tensor
    if place > size:
        last = before.name if before is not None else "its header"
        raise BadFile(
            f"{file} is truncated: {last} ends at byte {place}, the file at {size}", AGAIN
        )
    if place < size:
        raise BadFile(
            f"{file}: {size - place} bytes after its last tensor belong to nothing", AGAIN
        )


def _what_is_wrong(name: str, entry: Any) -> str:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        return f"{name} has no dtype, shape and data_offsets, or more than these"
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in BITS:
        return f"{name} has the unknown dtype {str(dtype)[:40]!r}"
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
        return f"{name} has the shape {str(shape)[:80]}"
    if (
        not isinstance(offsets, list)
        or len(offsets) != 2
        or not all(type(n) is int for n in offsets)
        or not 0 <= offsets[0] <= offsets[1]
    ):
        return f"{name} has the data_offsets {str(offsets)[:80]}"
    return (
        f"{name} is {dtype} {shape}, which does not fill its"
        f" {offsets[1] - offsets[0]} bytes (data_offsets {offsets})"
    )


def _short(problem: BaseException) -> str:
    return str(problem)[:100] or type(problem).__name__


def render(
    metadata: dict[str, str] | None, entries: Iterable[tuple[str, str, tuple[int, ...], int]]
) -> bytes:
    """A header for tensors (name, dtype, shape, bytes) laid one behind the other.

    Returns the length and the JSON, padded with spaces so that the data begins at a multiple of 8.
    """
    header: dict[str, Any] = {}
    if metadata:
        header["__metadata__"] = dict(metadata)
    place = 0
    for name, dtype, shape, nbytes in entries:
        header[name] = {
            "dtype": dtype,
            "shape": list(shape),
            "data_offsets": [place, place + nbytes],
        }
        place += nbytes
    raw = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    raw += b" " * (-len(raw) % 8)
    return len(raw).to_bytes(8, "little") + raw
