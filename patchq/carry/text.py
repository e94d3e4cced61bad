"""Hunk arithmetic: put a patch's changes into a file that upstream changed, without a merge.

Where a patch's minimal changes (atoms) neither overlap nor touch upstream's (gaps), a three-way
merge only shifts them. This is the rule of git's own xdiff (`xdl_do_merge`: changes that touch
are merged, not placed side by side); everything else goes to a real three-way merge.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from patchq.queue.diff import Atom, Hunk, same_path

_HEAD = re.compile(
    rb"^(?:diff --git (.+)|@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@.*)$", re.MULTILINE
)
_MARKS = (b"<<<<<<<", b"|||||||", b"=======", b">>>>>>>")


@dataclass(frozen=True, slots=True)
class Gap:
    """Old lines [old_start, old_end) stand as [new_start, new_end) on the other side."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def split(data: bytes) -> list[bytes]:
    """Lines with their ends, split at `\\n` only."""
    if b"\r" not in data and b"\x0b" not in data and b"\x0c" not in data:
        return data.splitlines(keepends=True)
    lines = data.split(b"\n")
    last = lines.pop()
    out = [line + b"\n" for line in lines]
    return [*out, last] if last else out


def sections(text: bytes) -> Iterator[tuple[bytes, list[Gap], bytes]]:
    """Each file of a zero-context diff: path, its gaps, its text."""
    path: bytes | None = None
    gaps: list[Gap] = []
    start = 0
    for found in _HEAD.finditer(text):
        if found[1] is not None:
            if path is not None:
                yield path, gaps, text[start : found.start()]
            path, gaps, start = _path(found[1]), [], found.start()
            continue
        gaps.append(_gap(found))
    if path is not None:
        yield path, gaps, text[start:]


def _path(rest: bytes) -> bytes:
    try:
        return same_path(rest)
    except Exception:
        # Two files compared outside a tree have two names; nobody asks for them.
        return rest


def _gap(found: re.Match[bytes]) -> Gap:
    old_start, new_start = int(found[2]), int(found[4])
    old_len = 1 if found[3] is None else int(found[3])
    new_len = 1 if found[5] is None else int(found[5])
    # A side without lines names the line before the place.
    old_start -= bool(old_len)
    new_start -= bool(new_len)
    return Gap(old_start, old_start + old_len, new_start, new_start + new_len)


class Gain:
    """What upstream added to a file: asked line by line, counted only where a line is there.

    `section` is upstream's zero-context diff of the file; without one (a new or a moved file)
    the two contents say the same.
    """

    def __init__(self, section: bytes | None, old: bytes = b"", new: bytes = b"") -> None:
        self._section = section
        self._old = old
        self._new = new

    @cached_property
    def lines(self) -> Counter[bytes]:
        """The lines (without ends) that stand there more often than before."""
        if self._section is None:
            return _bare(split(self._new)) - _bare(split(self._old))
        inside = self._section[self._section.find(b"\n@@") + 1 :].split(b"\n")
        plus = Counter(line[1:].rstrip(b"\r") for line in inside if line[:1] == b"+")
        minus = Counter(line[1:].rstrip(b"\r") for line in inside if line[:1] == b"-")
        return plus - minus

    def shared(self, added: Counter[bytes]) -> int:
        """How many of the lines `added` upstream added as well."""
        if self._section is not None:
            section = self._section
            if not any(b"\n+" + line in section for line in added):
                return 0
        return sum((added & self.lines).values())

    def defines(self, names: Iterable[bytes]) -> bool:
        """Whether upstream's added lines may define one of the Python `names`."""
        text = self._new if self._section is None else self._section
        return any(b"def " + name in text or b"class " + name in text for name in names)


def _bare(lines: Iterable[bytes]) -> Counter[bytes]:
    return Counter(line.rstrip(b"\r\n") for line in lines)


def atoms_of(hunks: Iterable[Hunk]) -> list[Atom]:
    return [atom for hunk in hunks for atom in hunk.atoms]


def fits(lines: Sequence[bytes], hunks: Iterable[Hunk]) -> bool:
    """Whether every hunk's old side (context and removed lines) stands where it says."""
    return all(tuple(lines[hunk.start : hunk.start + len(hunk.old)]) == hunk.old for hunk in hunks)


def replace(lines: Sequence[bytes], atoms: Iterable[Atom]) -> list[bytes]:
    """`lines` with every atom put in; atoms are in order and do not overlap."""
    out: list[bytes] = []
    at = 0
    for atom in atoms:
        out += lines[at : atom.start]
        out += atom.new
        at = atom.end
    out += lines[at:]
    return out


def shift(gaps: Sequence[Gap], atoms: Sequence[Atom]) -> tuple[list[Atom], list[Gap]] | None:
    """The atoms as they read on the other side, and the gaps after both sides took them.

    None where an atom overlaps or touches a gap.
    """
    moved: list[Atom] = []
    after: list[Gap] = []
    at = growth = offset = 0
    for atom in atoms:
        while at < len(gaps) and gaps[at].old_end < atom.start:
            after.append(_grown(gaps[at], growth))
            offset = gaps[at].new_end - gaps[at].old_end
            at += 1
        if at < len(gaps) and gaps[at].old_start <= atom.end:
            return None
        moved.append(Atom(atom.start + offset, atom.end + offset, atom.new))
        growth += len(atom.new) - (atom.end - atom.start)
    after += [_grown(gap, growth) for gap in gaps[at:]]
    return moved, after


def clear(gaps: Sequence[Gap], atoms: Iterable[Atom]) -> list[Atom]:
    """The atoms that neither overlap nor touch a gap."""
    ends = [gap.old_end for gap in gaps]

    def is_clear(atom: Atom) -> bool:
        place = bisect_left(ends, atom.start)
        return place == len(gaps) or gaps[place].old_start > atom.end

    return [atom for atom in atoms if is_clear(atom)]


def _grown(gap: Gap, by: int) -> Gap:
    if not by:
        return gap
    return Gap(gap.old_start + by, gap.old_end + by, gap.new_start + by, gap.new_end + by)


def same_places(gaps: Sequence[Gap], atoms: Iterable[Atom], other: Sequence[bytes]) -> int:
    """How many atoms the other side made verbatim, at the same place."""
    starts = [gap.old_start for gap in gaps]
    count = 0
    for atom in atoms:
        for gap in gaps[bisect_left(starts, atom.start) :]:
            if gap.old_start != atom.start:
                break
            if gap.old_end == atom.end and atom.new == tuple(other[gap.new_start : gap.new_end]):
                count += 1
                break
    return count


def block(atom: Atom) -> bytes:
    """The added lines of an atom without empty lines around them."""
    return b"".join(atom.new).strip(b"\n")


def holds(data: bytes, wanted: bytes) -> bool:
    """Whether the lines `wanted` (without a last line end) stand in `data`, as whole lines."""
    return b"\n%b\n" % wanted in b"\n%b\n" % data


def counted(atoms: Iterable[Atom]) -> Counter[bytes]:
    """The added lines (without ends) that are not blank."""
    return _bare(line for atom in atoms for line in atom.new if not line.isspace())


def opposed(sides: Sequence[bytes], labels: Sequence[str]) -> bytes:
    """Ours, base and theirs as a whole between conflict markers; labels in that order."""
    out = b""
    marks, names = (b"<<<<<<< ", b"||||||| ", b"======="), (labels[0], labels[1], "")
    for mark, label, side in zip(marks, names, sides, strict=True):
        out += mark + os.fsencode(label) + b"\n" + side
        if side and not side.endswith(b"\n"):
            out += b"\n"
    return out + b">>>>>>> " + os.fsencode(labels[2]) + b"\n"


def sides(marked: bytes, contents: Sequence[bytes]) -> tuple[bytes, bytes] | None:
    """What `marked` (a merge with diff3 markers) comes to where ours wins, and where theirs does.

    None where that cannot be read off it: one of the `contents` has lines like markers, or no
    line end at its end, which a conflict there would have added.
    """
    for each in contents:
        if each and not each.endswith(b"\n"):
            return None
        if each.startswith(_MARKS) or any(b"\n" + mark in each for mark in _MARKS):
            return None
    text = b"\n" + marked
    ours: list[bytes] = []
    theirs: list[bytes] = []
    at = 1
    while (start := text.find(b"\n" + _MARKS[0], at - 1)) >= 0:
        parts = []
        end = start
        for mark in _MARKS[1:]:
            begin = text.index(b"\n", end + 1) + 1
            end = text.index(b"\n" + mark, begin - 1)
            parts.append(text[begin : end + 1])
        ours += (text[at : start + 1], parts[0])
        theirs += (text[at : start + 1], parts[2])
        at = text.index(b"\n", end + 1) + 1
    return b"".join(ours) + text[at:], b"".join(theirs) + text[at:]
