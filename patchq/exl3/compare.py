"""Stored tensors read by pieces, hashed, and compared bit for bit with what they were cut from.

Memory is bounded whatever the tensors' sizes: two buffers of `CHUNK` bytes for each thread.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from patchq.exl3.headers import AGAIN, BadFile
from patchq.exl3.model import Range, Tensor

CHUNK = 4 << 20

Bytes = NDArray[np.uint8]


class Reader:
    """The files of a folder, opened when they are first read. Threads may share one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.bytes_read = 0
        self._open: dict[str, int] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()

    def fill(self, buffer: Bytes, tensor: Tensor, offset: int) -> None:
        """The bytes of `tensor` from `offset` on, as many as `buffer` holds.

        Raises BadFile if the file ends before, or cannot be read.
        """
        place, rest = tensor.start + offset, buffer.data
        try:
            descriptor = self._descriptor(tensor.file)
            while rest:
                got = os.preadv(descriptor, [rest], place)
                if not got:
                    raise BadFile(f"{tensor.file} ends at byte {place}, in {tensor.name}", AGAIN)
                place, rest = place + got, rest[got:]
        except OSError as problem:
            raise BadFile(f"{tensor.file}: {problem.strerror}", AGAIN) from None
        with self._lock:
            self.bytes_read += buffer.nbytes

    def read(self, tensor: Tensor, offset: int, size: int) -> Bytes:
        buffer = np.empty(size, np.uint8)
        self.fill(buffer, tensor, offset)
        return buffer

    def _descriptor(self, file: str) -> int:
        with self._lock:
            if file not in self._open:
                self._open[file] = os.open(self.root / file, os.O_RDONLY | os.O_CLOEXEC)
            return self._open[file]


@dataclass(frozen=True, eq=False)
class Stored:
    """A tensor and where it is read."""

    reader: Reader
    tensor: Tensor


def digest(stored: Stored) -> bytes:
    """SHA-256 of the tensor's bytes."""
    hasher = hashlib.sha256()
    tensor, buffer = stored.tensor, _buffers()[0]
    for start in range(0, tensor.nbytes, CHUNK):
        part = buffer[: min(CHUNK, tensor.nbytes - start)]
        stored.reader.fill(part, tensor, start)
        hasher.update(part.data)
    return hasher.digest()


@dataclass(frozen=True)
class Compared:
    """`digests[i]` of slice i (None: it was not there); the first difference, if there is one."""

    digests: tuple[bytes | None, ...]
    different: str = ""


def compare(
    source: Stored,
    slices: Sequence[Stored | None],
    axis: int | None = None,
    ranges: Sequence[Sequence[Range]] = (),
) -> Compared:
    """Whether slice i is `ranges[i]` of the source along `axis`, bit for bit (None: all of it).

    Every byte of every slice is read once, in order. The shapes must have been found to fit. An
    absent slice is passed over.
    """
    hashers = [None if each is None else hashlib.sha256() for each in slices]
    different = ""
    for place, first, own, theirs in _parts(source, slices, axis, ranges):
        hasher = hashers[place]
        assert hasher is not None
        hasher.update(own.data)
        if not different and not all(np.array_equal(one, two) for one, two in theirs):
            each = slices[place]
            assert each is not None
            different = (
                f"{each.tensor.name} ({each.tensor.file}) is not what {source.tensor.name}"
                f" has there: they differ in its bytes {first} to {first + own.nbytes - 1}"
            )
    return Compared(
        tuple(None if hasher is None else hasher.digest() for hasher in hashers), different
    )


Pairs = list[tuple[NDArray[Any], NDArray[Any]]]
_Part = tuple[int, int, Bytes, Pairs]


def _parts(
    source: Stored,
    slices: Sequence[Stored | None],
    axis: int | None,
    ranges: Sequence[Sequence[Range]],
) -> Iterator[_Part]:
    """Which slice, from which byte of it on, its bytes, and what of them must equal what."""
    shape = source.tensor.shape
    if axis is None or 0 in shape:
        outer, unit, row = 1, 1, source.tensor.nbytes
        ranges = [[(0, row)]] * len(slices)
    else:
        outer = prod(shape[:axis])
        row = source.tensor.nbytes // outer
        unit = row // shape[axis]
    spans = [[(first * unit, last * unit) for first, last in each] for each in ranges]
    if outer > 1 and max(row, *map(_width, spans)) <= CHUNK:
        yield from _by_rows(source, slices, spans, outer, row)
    else:
        yield from _by_spans(source, slices, spans, outer, row)


def _by_rows(
    source: Stored,
    slices: Sequence[Stored | None],
    spans: Sequence[Sequence[Range]],
    outer: int,
    row: int,
) -> Iterator[_Part]:
    """Whole rows of the source at a time: each is read once for all of its slices."""
    whole, other = _buffers()
    step = CHUNK // max(row, *map(_width, spans))
    word = _word([row, *(edge for each in spans for span in each for edge in span)])
    for top in range(0, outer, step):
        rows = min(step, outer - top)
        taken = whole[: rows * row]
        source.reader.fill(taken, source.tensor, top * row)
        table = taken.view(word).reshape(rows, -1)
        for place, each in enumerate(slices):
            if each is None:
                continue
            width = _width(spans[place])
            own = other[: rows * width]
            each.reader.fill(own, each.tensor, top * width)
            mine, at, pairs = own.view(word).reshape(rows, -1), 0, []
            for span in spans[place]:
                first, last = (edge // word.itemsize for edge in span)
                pairs.append((mine[:, at : at + last - first], table[:, first:last]))
                at += last - first
            yield place, top * width, own, pairs


def _by_spans(
    source: Stored,
    slices: Sequence[Stored | None],
    spans: Sequence[Sequence[Range]],
    outer: int,
    row: int,
) -> Iterator[_Part]:
    """What lies together in the source, a chunk at a time."""
    whole, other = _buffers()
    for top in range(outer):
        for place, each in enumerate(slices):
            if each is None:
                continue
            at = top * _width(spans[place])
            for first, last in spans[place]:
                for start in range(first, last, CHUNK):
                    size = min(CHUNK, last - start)
                    taken, own = whole[:size], other[:size]
                    source.reader.fill(taken, source.tensor, top * row + start)
                    each.reader.fill(own, each.tensor, at)
                    yield place, at, own, [(own, taken)]
                    at += size


def _width(spans: Sequence[Range]) -> int:
    return sum(last - first for first, last in spans)


def _word(edges: Sequence[int]) -> np.dtype[Any]:
    """The widest integer that all of these are multiples of: wide ones compare faster."""
    return np.dtype(next(f"u{size}" for size in (8, 4, 2, 1) if not any(e % size for e in edges)))


_local = threading.local()


def _buffers() -> tuple[Bytes, Bytes]:
    """Two buffers of CHUNK bytes for this thread."""
    if not hasattr(_local, "buffers"):
        _local.buffers = np.empty(CHUNK, np.uint8), np.empty(CHUNK, np.uint8)
    found: tuple[Bytes, Bytes] = _local.buffers
    return found
