"""`graph`: which patch needs which. Pure but for the reading.

A patch needs an earlier one that wrote a line which it changes or which stands in its hunks, that
removed lines from between theirs, or that made, removed or replaced its file. So a set of patches
that holds all that each of its own needs applies to the base without the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from patchq.carry.arrange import opened
from patchq.carry.workspace import Queue
from patchq.errors import PatchqError
from patchq.progress import SILENT, Progress
from patchq.queue.diff import FileDiff, Hunk
from patchq.queue.patch import Patch

Kind = Literal["lines", "context", "file"]


@dataclass(frozen=True)
class Need:
    """`patch` needs the earlier `other`, because of `path`.

    "lines": they touch, and cannot be exchanged; "context": only lines around its changes; "file":
    the file itself.
    """

    patch: str
    other: str
    kind: Kind
    path: bytes


@dataclass(frozen=True)
class GraphReport:
    """The applied patches' names in order, and what each needs directly."""

    queue: str
    base: str
    names: tuple[str, ...]
    needs: tuple[Need, ...]

    def of(self, name: str) -> tuple[Need, ...]:
        return tuple(need for need in self.needs if need.patch == name)

    def around(self, name: str) -> GraphReport:
        """Only what `name` needs, itself, and what needs it, through others as well."""
        near = closed([name], self.needs)
        near |= {other for other in self.names if name in closed([other], self.needs)}
        return GraphReport(
            self.queue,
            self.base,
            tuple(each for each in self.names if each in near),
            tuple(need for need in self.needs if {need.patch, need.other} <= near),
        )


def graph(queue: Queue, name: str | None = None, *, progress: Progress = SILENT) -> GraphReport:
    """What each applied patch of the queue needs, or only around the patch `name`."""
    patch = queue.series.find(name) if name is not None else None
    if patch is not None and patch.name in queue.series.held:
        raise PatchqError(f"{patch.name} is held: it needs nothing now", "see `patchq series`")
    with opened(queue, progress=progress) as bench:
        lengths = {
            path: None if file is None else len(file.lines)
            for path, file in bench.chain.base.items()
        }
        names = tuple(patch.name for patch in bench.applied)
        needs = needed(lengths, bench.applied)
        report = GraphReport(queue.config.name, bench.base.name, names, needs)
        return report.around(patch.name) if patch is not None else report


def closed(names: Iterable[str], needs: Sequence[Need]) -> frozenset[str]:
    """`names` with all that they need."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [need.other for need in needs if need.patch == name]
    return frozenset(found)


def needed(lengths: Mapping[bytes, int | None], patches: Sequence[Patch]) -> tuple[Need, ...]:
    """What each of `patches` needs, in their order, the strongest reason for each pair.

    `lengths` gives the base's lines of every path that they touch, None where absent.
    """
    files = {path: _File(size) for path, size in lengths.items()}
    place = {patch.name: at for at, patch in enumerate(patches)}
    found: list[Need] = []
    for patch in patches:
        seen: dict[str, Need] = {}
        for file in patch.files or ():
            for other, kind in files[file.path].needs(file, files):
                need = Need(patch.name, other, kind, file.path)
                if other not in seen or _RANK[kind] < _RANK[seen[other].kind]:
                    seen[other] = need
        for file in patch.files or ():
            files[file.path].take(file, patch.name)
        found += sorted(seen.values(), key=lambda need: place[need.other])
    return tuple(found)


_RANK: Mapping[Kind, int] = {"file": 0, "lines": 1, "context": 2}


class _File:
    """Who wrote each line of a file, and who removed lines before each (and behind the last)."""

    def __init__(self, size: int | None) -> None:
        self.there = size is not None
        self.lines: list[str] = [""] * (size or 0)
        self.seams: list[frozenset[str]] = [frozenset()] * ((size or 0) + 1)
        self.whole: str = ""
        """Who made, removed or replaced it last."""
        self.mode: str = ""
        self.touched: list[str] = []

    def needs(self, file: FileDiff, files: Mapping[bytes, _File]) -> list[tuple[str, Kind]]:
        found: list[tuple[str, Kind]] = [(self.whole, "file")]
        if file.added:
            beside = _beside(file.path, files)
            found += [(name, "file") for other in beside for name in other.touched]
        elif file.deleted or file.whole or file.binary:
            found += [(name, "file") for name in self.touched]
        else:
            for hunk in file.hunks:
                found += self._around(hunk)
        if file.old_mode != file.new_mode:
            found.append((self.mode, "file"))
        return [(name, kind) for name, kind in found if name]

    def _around(self, hunk: Hunk) -> list[tuple[str, Kind]]:
        start, end = hunk.start, hunk.start + len(hunk.old)
        # A hunk at the file's edge is looked for at the edge only.
        first = start if start == 0 else start + 1
        trailing = end - hunk.atoms[-1].end if hunk.atoms else 1
        last = end + 1 if trailing == 0 else end
        found = [(self.lines[at], _kind(hunk, at, at + 1)) for at in range(start, end)]
        for at in range(first, last):
            found += [(name, _kind(hunk, at, at)) for name in sorted(self.seams[at])]
        return found

    def take(self, file: FileDiff, name: str) -> None:
        self.touched.append(name)
        if file.old_mode != file.new_mode:
            self.mode = name
        if file.added or file.deleted or file.whole or file.binary:
            self.whole, self.there = name, not file.deleted
            size = sum(len(hunk.new) for hunk in file.hunks)
            self.lines = [] if file.deleted else [name] * size
            self.seams = [frozenset()] * (len(self.lines) + 1)
            return
        for hunk in reversed(file.hunks):
            for atom in reversed(hunk.atoms):
                self._put(atom.start, atom.end, len(atom.new), name)

    def _put(self, start: int, end: int, size: int, name: str) -> None:
        self.lines[start:end] = [name] * size
        if size:
            # What was removed at its edges stays removed there.
            inner = [frozenset[str]()] * (size - 1)
            self.seams[start : end + 1] = [self.seams[start], *inner, self.seams[end]]
        else:
            self.seams[start : end + 1] = [frozenset({name})]


def _kind(hunk: Hunk, start: int, end: int) -> Kind:
    """Whether old lines [start, end) touch what the hunk changes, or only stand around it."""
    touches = any(atom.start <= end and start <= atom.end for atom in hunk.atoms)
    return "lines" if touches else "context"


def _beside(path: bytes, files: Mapping[bytes, _File]) -> list[_File]:
    """Files whose name the new one's needs for a folder, or that stand below its name."""
    return [
        file
        for other, file in files.items()
        if path.startswith(other + b"/") or other.startswith(path + b"/")
    ]
