"""Moves the bytes of one shard: maps the source, gathers each rank's columns, writes.

The pages of the source go to the result by `pwritev` straight from the mapping: one copy, in the
kernel, and no byte is moved in Python. Pages that are done with are unmapped, so memory is
`WINDOW` and a chunk or two, whatever the sizes of tensors and shards.
"""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from patchq.exl3.headers import BadFile
from patchq.exl3.layout import ShardJob, Span, Strided

CHUNK = 4 << 20
"""Bytes that are written before the progress hears of it."""
WINDOW = 4 << 20
"""Bytes that stay mapped behind what is written."""
AHEAD = 16 << 20
"""Bytes that are read ahead."""
VECTORS = 1024
"""How many pieces one `pwritev` takes: Linux's IOV_MAX."""

Told = Callable[[int], None]


def copy(job: ShardJob, targets: Sequence[Path], told: Told, *, sync: bool = True) -> None:
    """Fill `targets` (new files, one for each output); `sync`: and bring them to the disk.

    `told` hears how many bytes were written since it was last called. Raises OSError (the disk is
    full), BadFile (the source became shorter, or cannot be read).
    """
    source = os.open(job.shard.path, os.O_RDONLY | os.O_CLOEXEC)
    outputs: list[int] = []
    try:
        if os.fstat(source).st_size != job.shard.size:
            raise _changed(job)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        sinks: list[_Sink] = []
        for path, output in zip(targets, job.outputs, strict=True):
            outputs.append(os.open(path, flags, 0o644))
            sinks.append(_Sink(outputs[-1], output.header))
        window = _Window(source, job.shard.size, sinks)
        try:
            for each in job.jobs:
                if isinstance(each, Span):
                    _span(window, sinks, each, told)
                else:
                    _strided(window, sinks, each, told)
            for sink in sinks:
                sink.flush()
        except OSError as problem:
            # The kernel could not read the mapped page: cut short meanwhile, or a bad disk.
            if problem.errno == errno.EFAULT:
                raise _changed(job) from None
            raise
        for descriptor in outputs if sync else ():
            os.fsync(descriptor)
    finally:
        for descriptor in (source, *outputs):
            os.close(descriptor)


class _Window:
    """A file, mapped, of which only what is being worked on stays in memory."""

    def __init__(self, descriptor: int, size: int, sinks: Sequence[_Sink]) -> None:
        self._descriptor = descriptor
        self._size = size
        self._sinks = sinks
        self._map = mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)
        self._bytes = memoryview(self._map)
        self._dropped = 0
        self._ahead = 0

    def view(self, start: int, stop: int) -> memoryview:
        return self._bytes[start:stop]

    def at(self, place: int) -> None:
        """What is before `place` is done with, what follows will be needed."""
        if place + AHEAD // 2 > self._ahead:
            start = max(self._ahead, place)
            os.posix_fadvise(self._descriptor, start, AHEAD, os.POSIX_FADV_WILLNEED)
            self._ahead = start + AHEAD
        if place - self._dropped >= WINDOW:
            # What still waits to be written would map its pages again, and they would stay.
            for sink in self._sinks:
                sink.flush()
            whole = (place - self._dropped) // mmap.PAGESIZE * mmap.PAGESIZE
            self._map.madvise(mmap.MADV_DONTNEED, self._dropped, whole)
            self._dropped += whole


class _Sink:
    """An output that is written in few calls: what goes on where the last ended waits for more."""

    def __init__(self, descriptor: int, header: bytes) -> None:
        self._descriptor = descriptor
        self._views = [memoryview(header)]
        self._start = 0
        self._count = len(header)

    def add(self, views: list[memoryview], count: int, place: int) -> None:
        """`views`, `count` bytes in all, belong at `place`."""
        if place != self._start + self._count or len(self._views) + len(views) > VECTORS:
            self.flush()
            self._start = place
        self._views += views
        self._count += count
        if self._count >= CHUNK:
            self.flush()

    def flush(self) -> None:
        for first in range(0, len(self._views), VECTORS):
            self._start += _write(
                self._descriptor, self._views[first : first + VECTORS], self._start
            )
        self._views = []
        self._count = 0


def _span(window: _Window, sinks: Sequence[_Sink], span: Span, told: Told) -> None:
    for done in range(0, span.length, CHUNK):
        place, count = span.source + done, min(CHUNK, span.length - done)
        window.at(place)
        sinks[span.output].add([window.view(place, place + count)], count, span.target + done)
        told(count)


def _strided(window: _Window, sinks: Sequence[_Sink], job: Strided, told: Told) -> None:
    at_once = max(1, CHUNK // job.row)
    for first in range(0, job.rows, at_once):
        begin = job.source + first * job.row
        rows = min(at_once, job.rows - first)
        window.at(begin)
        for output, place, columns in job.targets:
            width = sum(stop - start for start, stop in columns)
            views = [
                window.view(row + start, row + stop)
                for row in range(begin, begin + rows * job.row, job.row)
                for start, stop in columns
            ]
            sinks[output].add(views, rows * width, place + first * width)
            told(rows * width)


def _changed(job: ShardJob) -> BadFile:
    return BadFile(f"{job.shard.file} changed while it was read", "run it again")


def _write(descriptor: int, views: list[memoryview], place: int) -> int:
    """Write all of `views` one behind the other; how many bytes that are."""
    total = sum(map(len, views))
    done = os.pwritev(descriptor, views, place)
    while done < total:
        # Two gigabytes at most go out at once; or the disk is full, and the next write tells.
        skip = done
        rest = []
        for view in views:
            if skip < len(view):
                rest.append(view[skip:])
            skip = max(0, skip - len(view))
        done += os.pwritev(descriptor, rest, place + done)
    return total
