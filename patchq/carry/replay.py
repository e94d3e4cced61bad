"""The patches of a series in another order, or without some of them: pure, no git.

Every line of a touched file is known by itself, from the base or from the patch that wrote it. So
where a patch's change belongs is never guessed: it stands between the very lines between which it
stood before. Where another change that is not there (or was not) touches it, that is a clash.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from patchq.carry import text
from patchq.carry.text import Gap
from patchq.queue import binary
from patchq.queue.diff import Atom, FileDiff
from patchq.queue.patch import Patch

LINK = "120000"


class Line(bytes):
    """A line that is itself: two of the same text are two. `owner` is the patch that wrote it."""

    owner: str = ""


@dataclass(frozen=True, eq=False)
class File:
    """A file as it stands between two patches: its git mode and its lines."""

    mode: str
    lines: Sequence[bytes]

    @property
    def data(self) -> bytes:
        return b"".join(self.lines)

    def same(self, other: File | None) -> bool:
        if self is other:
            return True
        return other is not None and (self.mode, self.data) == (other.mode, other.data)


@dataclass(frozen=True)
class Change:
    """What a patch does to a path. `atoms` None: the content is replaced as a whole."""

    path: bytes
    before: File | None
    after: File | None
    atoms: tuple[Atom, ...] | None


@dataclass(frozen=True)
class Clash:
    """A patch that cannot stand where it is wanted: in which file, why, and because of whom."""

    patch: str
    path: bytes
    why: str
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Chain:
    """A series as it is: each patch's changes by name, and which patch removed which line."""

    base: Mapping[bytes, File | None]
    changes: Mapping[str, tuple[Change, ...]]
    removed: Mapping[int, str] = field(default_factory=dict)

    def at(self, patches: Iterable[Patch]) -> dict[bytes, File | None]:
        """Every touched file after `patches`, the first ones of the series."""
        now = dict(self.base)
        for patch in patches:
            now |= {change.path: change.after for change in self.changes[patch.name]}
        return now


@dataclass(frozen=True)
class Placed:
    """One patch in its new place: the files that it leaves, and whether its diff reads anew."""

    patch: Patch
    writes: Mapping[bytes, File | None]
    rewritten: bool


@dataclass(frozen=True)
class Replay:
    placed: tuple[Placed, ...]
    clashes: tuple[Clash, ...]


def lined(mode: str, data: bytes, owner: str = "") -> File:
    """A file whose lines are all new ones."""
    return File(mode, _lines(text.split(data), owner))


def chain(base: Mapping[bytes, File | None], patches: Sequence[Patch]) -> Chain:
    """The series on the base's files (every path that it touches, None where absent).

    Its diffs are canonical and apply exactly.
    """
    now = dict(base)
    found: dict[str, tuple[Change, ...]] = {}
    removed: dict[int, str] = {}
    for patch in patches:
        changes = tuple(change_of(file, now[file.path], patch) for file in patch.files or ())
        for change in changes:
            now[change.path] = change.after
            if change.before is not None:
                kept = {id(line) for line in change.after.lines} if change.after else set()
                for line in change.before.lines:
                    if id(line) not in kept:
                        removed[id(line)] = patch.name
        found[patch.name] = changes
    return Chain(base, found, removed)


def change_of(file: FileDiff, before: File | None, patch: Patch) -> Change:
    """What `patch` does to one file that reads as its diff expects it."""
    if file.deleted:
        return Change(file.path, before, None, None)
    lines: Sequence[bytes] = () if before is None or file.whole else before.lines
    if file.binary:
        data = binary.new_content(file.raw, b"".join(lines), patch.file)
        return Change(file.path, before, lined(file.new_mode, data, patch.name), None)
    atoms = tuple(
        Atom(atom.start, atom.end, _lines(atom.new, patch.name))
        for atom in text.atoms_of(file.hunks)
    )
    after = File(file.new_mode, tuple(text.replace(lines, atoms)) if atoms else lines)
    return Change(file.path, before, after, None if before is None or file.whole else atoms)


def replay(known: Chain, order: Sequence[tuple[Patch, tuple[Change, ...]]]) -> Replay:
    """The patches of `order`, one on the other; all that clashes is told, not the first only.

    A change that clashes is left out, so that what needs it clashes too.
    """
    now = dict(known.base)
    names = dict.fromkeys((*known.changes, *(patch.name for patch, _ in order)))
    earlier = {name: place for place, name in enumerate(names)}
    placed: list[Placed] = []
    clashes: list[Clash] = []
    for patch, changes in order:
        writes: dict[bytes, File | None] = {}
        rewritten = moved = clashed = False
        for change in changes:
            here = now.get(change.path)
            why, result, gaps = _put(change, here)
            if not why and change.before is None:
                why = _in_the_way(change.path, now, changes)
            if why:
                others = _blame(change, here, gaps, known.removed, earlier, patch.name)
                clashes.append(Clash(patch.name, change.path, why, tuple(others)))
                clashed = True
                continue
            if here is not change.before:
                stands = _same(here, change.before) and _same(result, change.after)
                rewritten = rewritten or not stands
            moved = moved or not _same(here, result)
            writes[change.path] = now[change.path] = result
        if changes and not moved and not clashed:
            clashes.append(Clash(patch.name, b"", "it would change nothing any more"))
        placed.append(Placed(patch, writes, rewritten))
    return Replay(tuple(placed), tuple(clashes))


def between(old: Sequence[bytes], new: Sequence[bytes]) -> list[Gap]:
    """Where two states of a file differ, by the lines themselves."""
    places = {id(line): place for place, line in enumerate(new)}
    gaps: list[Gap] = []
    at = there = 0
    for place, line in enumerate(old):
        found = places.get(id(line))
        if found is None:
            continue
        assert found >= there, "lines keep their order, whatever stands between them"
        if place > at or found > there:
            gaps.append(Gap(at, place, there, found))
        at, there = place + 1, found + 1
    if at < len(old) or there < len(new):
        gaps.append(Gap(at, len(old), there, len(new)))
    return gaps


def aligned(before: bytes, now: File, gaps: Sequence[Gap], mode: str) -> File:
    """`before` as a file that shares its lines with `now`, but for `gaps` (from before to now)."""
    lines: list[bytes] = list(_lines(text.split(before), ""))
    at = there = 0
    for gap in (*gaps, Gap(len(lines), len(lines), len(now.lines), len(now.lines))):
        lines[at : gap.old_start] = now.lines[there : gap.new_start]
        at, there = gap.old_end, gap.new_end
    return File(mode, tuple(lines))


def _lines(lines: Iterable[bytes], owner: str) -> tuple[bytes, ...]:
    made = []
    for each in lines:
        line = Line(each)
        line.owner = owner
        made.append(line)
    return tuple(made)


def _same(one: File | None, other: File | None) -> bool:
    return one is other or (one is not None and one.same(other))


def _put(change: Change, here: File | None) -> tuple[str, File | None, list[Gap]]:
    """Why the change cannot be made, or what it makes; the gaps that it touches."""
    before, after = change.before, change.after
    if here is before:
        return "", after, []
    if before is None:
        return "the file is there already", None, []
    if here is None:
        return "the file is not there", None, []
    if after is None or change.atoms is None:
        if here.same(before):
            return "", after, []
        return "the file reads otherwise, and is replaced as a whole", None, []
    mode = here.mode
    if after.mode != before.mode:
        if here.mode not in (before.mode, after.mode):
            return "both change the mode", None, []
        mode = after.mode
    gaps = between(before.lines, here.lines)
    put = text.shift(gaps, change.atoms)
    if put is None:
        return "the lines that it changes read otherwise there", None, _hit(gaps, change)
    lines = tuple(text.replace(here.lines, put[0])) if change.atoms else here.lines
    return "", File(mode, lines), []


def _hit(gaps: Sequence[Gap], change: Change) -> list[Gap]:
    return [
        gap
        for gap in gaps
        if any(gap.old_start <= a.end and a.start <= gap.old_end for a in change.atoms or ())
    ]


def _in_the_way(path: bytes, now: Mapping[bytes, File | None], changes: Sequence[Change]) -> str:
    """A file where the new one needs a folder, or the other way round."""
    leaving = {change.path for change in changes if change.after is None}
    for other, file in now.items():
        if file is None or other in leaving:
            continue
        if path.startswith(other + b"/") or other.startswith(path + b"/"):
            return "a file stands where it needs a folder, or the other way round"
    return ""


def _blame(
    change: Change,
    here: File | None,
    gaps: Sequence[Gap],
    removed: Mapping[int, str],
    earlier: Mapping[str, int],
    patch: str,
) -> list[str]:
    """The patches that wrote, or removed, what stands differently, in the old order."""
    old = change.before.lines if change.before is not None else ()
    new = here.lines if here is not None else ()
    if not gaps:
        gaps = between(old, new) or [Gap(0, len(old), 0, len(new))]
    found: set[str] = set()
    for gap in gaps:
        found |= {_owner(line) for line in old[gap.old_start : gap.old_end]}
        for line in new[gap.new_start : gap.new_end]:
            owner = _owner(line)
            later = earlier.get(owner, -1) > earlier.get(patch, len(earlier))
            found.add(owner if later else removed.get(id(line), owner))
    return sorted(found & earlier.keys() - {patch}, key=earlier.__getitem__)


def _owner(line: bytes) -> str:
    return line.owner if isinstance(line, Line) else ""
