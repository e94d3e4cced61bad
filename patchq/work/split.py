"""`split`: some files or hunks of a patch become a patch of their own beside it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from patchq.carry import text
from patchq.carry.arrange import ChangeReport, Wish, opened, rearranged
from patchq.carry.replay import Change, File, between
from patchq.carry.workspace import Queue
from patchq.errors import PatchqError, UsageError
from patchq.paths import show
from patchq.progress import SILENT, Progress
from patchq.queue import patch as patches
from patchq.queue.diff import FileDiff
from patchq.queue.series import Line


@dataclass(frozen=True)
class Part:
    """What goes into the new patch: files or folders by name, or hunks by number (from 1)."""

    paths: tuple[bytes, ...] = ()
    hunks: frozenset[int] = frozenset()


def numbers(given: str) -> frozenset[int]:
    """`1,3-5` as numbers. Raises UsageError for anything else."""
    found: set[int] = set()
    for part in given.split(","):
        first, sign, last = part.partition("-")
        if not first.isdecimal() or (sign and not last.isdecimal()):
            raise UsageError(f"{given!r} is no list of hunks", "write --hunks 1,3-5")
        found |= set(range(int(first), int(last if sign else first) + 1))
    return frozenset(found)


def split(
    queue: Queue,
    name: str,
    new: str,
    part: Part,
    *,
    after: bool = False,
    subject: str | None = None,
    dry_run: bool = False,
    progress: Progress = SILENT,
) -> ChangeReport:
    """Take `part` of the patch `name` into the patch `new`, just before it (or `after` it).

    The new one gets the next number and a copy of the header, but for its checks. Raises
    PatchqError for a part that is nothing, or everything, or not in the patch.
    """
    patch = queue.series.find(name)
    if patch.name in queue.series.held:
        raise PatchqError(f"{patch.name} is held", f"`patchq unhold {patch.name}` first")
    if new in queue.series.names or not patches.FILE.match(f"0001-{new}.patch"):
        raise PatchqError(
            f"{new!r} is in use, or cannot be a patch's name",
            f"choose another one, say {patches.slug(new, queue.series.names)}",
        )
    header = patch.header.replace("Patchq-Check")
    header = header.replace("Subject", subject or f"{patch.header.subject} ({new})")
    made = patches.make(queue.series.next_number, new, header, patch.diff)
    with opened(queue, progress=progress) as bench:
        (files,) = (each.files or () for each in bench.applied if each.name == patch.name)
        first, second = parted(bench.chain.changes[patch.name], chosen(files, part), after)
        lines: list[Line] = []
        for line in queue.series.lines:
            pair = [Line("patch", made.file, made), line]
            lines += pair[:: -1 if after else 1] if line.patch is patch else [line]
        changes = {new: second, patch.name: first} if after else {new: first, patch.name: second}
        summary = f"{patch.name}: {new} is taken out of it"
        wish = Wish(
            "split", patch.name, summary, tuple(lines), changes, fresh=frozenset({patch.name, new})
        )
        return rearranged(bench, wish, dry_run=dry_run)


def chosen(files: Sequence[FileDiff], part: Part) -> dict[bytes, frozenset[int] | None]:
    """The atoms (from 0) of each file that `part` takes; None: the whole file.

    Raises PatchqError where that is nothing, everything, or not to be had.
    """
    found: dict[bytes, frozenset[int] | None] = {}
    count = 0
    for file in files:
        size = _hunks(file)
        mine = {number - count - 1 for number in part.hunks if count < number <= count + size}
        if any(_below(file.path, path) for path in part.paths) or len(mine) == size:
            found[file.path] = None
        elif mine:
            of = [place for place, hunk in enumerate(file.hunks) for _ in hunk.atoms]
            found[file.path] = frozenset(at for at, place in enumerate(of) if place in mine)
        count += size
    missing = [path for path in part.paths if not any(_below(f.path, path) for f in files)]
    if missing:
        raise PatchqError(f"the patch does not touch {show(missing[0])}", _choice(files))
    if part.hunks and max(part.hunks) > count:
        raise PatchqError(f"the patch has no hunk {max(part.hunks)}", _choice(files))
    if not found:
        raise PatchqError("nothing is chosen", _choice(files))
    if len(found) == len(files) and not any(found.values()):
        raise PatchqError("that is the whole patch", "`patchq rename` gives it another name")
    return found


def parted(
    changes: Sequence[Change], take: Mapping[bytes, frozenset[int] | None], after: bool
) -> tuple[tuple[Change, ...], tuple[Change, ...]]:
    """The changes as two patches, one on the other; the taken ones come first, or `after`."""
    first: list[Change] = []
    second: list[Change] = []
    for change in changes:
        atoms = take.get(change.path, frozenset())
        if not atoms:
            (second if (atoms is None) == after else first).append(change)
            continue
        one, two = _cut(change, atoms, after)
        first.append(one)
        second.append(two)
    return tuple(first), tuple(second)


def _cut(change: Change, taken: Collection[int], after: bool) -> tuple[Change, Change]:
    before = change.before
    assert before is not None and change.after is not None and change.atoms is not None
    mine = [atom for place, atom in enumerate(change.atoms) if place in taken]
    rest = [atom for place, atom in enumerate(change.atoms) if place not in taken]
    lower, upper = (rest, mine) if after else (mine, rest)
    # The mode goes with what stays in the old patch.
    mode = change.after.mode if after else before.mode
    middle = File(mode, tuple(text.replace(before.lines, lower)))
    gaps = between(before.lines, middle.lines)
    put = text.shift(gaps, upper)
    assert put is not None, "hunks of one diff do not touch"
    return (
        replace(change, after=middle, atoms=tuple(lower)),
        Change(change.path, middle, change.after, tuple(put[0])),
    )


def _below(path: bytes, wanted: bytes) -> bool:
    return path == wanted or path.startswith(wanted.rstrip(b"/") + b"/")


def _hunks(file: FileDiff) -> int:
    """How many parts the file's change has; what is made, removed or replaced whole is one."""
    whole = file.whole or file.added or file.deleted or file.binary
    return 1 if whole else len(file.hunks) or 1


def _choice(files: Sequence[FileDiff]) -> str:
    """What can be named, with the hunks' numbers."""
    told: list[str] = []
    count = 0
    for file in files:
        size = _hunks(file)
        told.append(
            f"{show(file.path)} (hunk{'s' if size > 1 else ''} {count + 1}"
            f"{f'-{count + size}' if size > 1 else ''})"
        )
        count += size
    return f"it has {', '.join(told)}"
