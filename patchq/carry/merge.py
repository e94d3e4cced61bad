"""The three-way merge of one path of one patch, and what it shows.

base is the file before the patch on the old release, theirs the file after it, ours the file as
the series carried so far left it on the new release. Nothing here writes anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from patchq.carry import text
from patchq.carry.text import Gap
from patchq.gitstore.contents import Merged
from patchq.gitstore.objects import blob_id
from patchq.gitstore.store import Store
from patchq.judge.definitions import doubles, named
from patchq.judge.model import FileSeen
from patchq.queue.diff import Atom, Hunk

LINK = "120000"
C_LIKE = (b".c", b".cc", b".cpp", b".cu", b".cuh", b".h", b".hpp", b".rs")


@dataclass(frozen=True)
class Blob:
    """A file of a tree: its git mode and its content."""

    mode: str
    data: bytes

    @cached_property
    def lines(self) -> list[bytes]:
        return text.split(self.data)

    @cached_property
    def oid(self) -> str:
        return blob_id(self.data)

    @property
    def mergeable(self) -> bool:
        """Text of a regular file; git calls content with an early NUL binary."""
        return self.mode != LINK and b"\0" not in self.data[:8000]


@dataclass
class Track:
    """One path on both sides while the series goes by. `gaps` None: not known (any more)."""

    path: bytes
    new_path: bytes
    old: Blob | None
    new: Blob | None
    gaps: list[Gap] | None = None
    gain: text.Gain = field(default_factory=lambda: text.Gain(None))
    upstream_changed: bool = False


@dataclass(frozen=True)
class Outcome:
    """The merged file (in a conflict the patch's own text), what was seen, the text with markers,
    and the text with upstream's winning.
    """

    result: Blob | None
    seen: FileSeen
    gaps: list[Gap] | None = None
    marked: bytes = field(default=b"", repr=False)
    yielding: Blob | None = field(default=None, repr=False)


def gaps_of(store: Store, track: Track) -> list[Gap]:
    """Where the two sides of `track` differ; both must be mergeable texts."""
    if track.gaps is None:
        assert track.old is not None and track.new is not None
        if track.old.data == track.new.data:
            track.gaps = []
        else:
            diff = store.diff_data(track.old.data, track.new.data)
            track.gaps = [gap for _, gaps, _ in text.sections(diff) for gap in gaps]
    return track.gaps


def merge(
    store: Store,
    track: Track,
    theirs: Blob | None,
    hunks: Sequence[Hunk],
    labels: tuple[str, str, str],
    obstacle: str = "",
) -> Outcome:
    """Merge what a patch does to one path onto the new release's side of it.

    `hunks` are the patch's own (none where the file is replaced whole), `labels` name the three
    sides in conflict markers, `obstacle` says what stands in the way of a new file.
    """
    base, ours = track.old, track.new
    atoms = text.atoms_of(hunks)
    seen = FileSeen(
        path=track.path,
        new_path=track.new_path,
        merge="clean",
        atoms=len(atoms),
        lines=sum(text.counted(atoms).values()),
        upstream_changed=track.upstream_changed,
        added=base is None,
        mode_only=base is not None and theirs is not None and base.data == theirs.data,
    )
    if _equal(theirs, base):
        return Outcome(ours, replace(seen, merge="noop"), track.gaps)
    if obstacle:
        return _conflict(theirs, seen, obstacle)
    if _equal(ours, base):
        return Outcome(theirs, seen, [])
    if _equal(ours, theirs):
        same = replace(seen, merge="empty", same=len(atoms), found=seen.lines, reverse=True)
        return Outcome(ours, same, [])
    if theirs is None:
        kind = "changed upstream, deleted by the patch"
        return _conflict(None, seen, kind, opposed(ours, base, None, labels))
    if ours is None:
        return _conflict(theirs, seen, "deleted upstream", opposed(None, base, theirs, labels))
    mode = _mode(base, ours, theirs)
    if mode is None:
        return _conflict(theirs, seen, "both changed the mode")
    if base is not None and base.data == theirs.data:
        merged = Blob(mode, ours.data)
        return Outcome(merged, replace(seen, merge=_left(merged, ours)), track.gaps)
    if base is not None and base.data == ours.data:
        return Outcome(Blob(mode, theirs.data), seen, [])
    if ours.data == theirs.data:
        merged = Blob(mode, ours.data)
        same = replace(seen, same=len(atoms), found=seen.lines, reverse=True)
        return Outcome(merged, replace(same, merge=_left(merged, ours)), [])
    if not all(side.mergeable for side in (base, ours, theirs) if side is not None):
        kind = "both changed the link" if LINK in (ours.mode, theirs.mode) else "binary"
        return _conflict(theirs, seen, kind)
    if base is None:
        return _texts(store, track, Blob(mode, b""), ours, theirs, atoms, hunks, seen, labels)
    return _texts(store, track, base, ours, Blob(mode, theirs.data), atoms, hunks, seen, labels)


def _texts(
    store: Store,
    track: Track,
    base: Blob,
    ours: Blob,
    theirs: Blob,
    atoms: list[Atom],
    hunks: Sequence[Hunk],
    seen: FileSeen,
    labels: tuple[str, str, str],
) -> Outcome:
    """Both sides changed a text: hunk arithmetic where it can, a real merge where it must."""
    gaps = gaps_of(store, track) if track.old is not None else [Gap(0, 0, 0, len(ours.lines))]
    seen = replace(
        seen,
        found=track.gain.shared(text.counted(atoms)),
        same=text.same_places(gaps, atoms, ours.lines),
    )
    # Without hunks (a file that the patch moves) only a real merge knows what it changes.
    put = text.shift(gaps, atoms) if atoms else None
    if put is not None:
        moved, after = put
        result = Blob(theirs.mode, b"".join(text.replace(ours.lines, moved)))
        return _once(track, theirs, ours, Outcome(result, seen, after), moved)
    merged = store.merge_file(base.data, ours.data, theirs.data, labels=labels)
    if not merged.conflicts:
        result = Blob(theirs.mode, merged.data)
        if result == ours:
            seen = replace(seen, merge="empty", reverse=_reverse(ours.data, hunks))
            return Outcome(result, seen, None)
        return _once(track, theirs, ours, Outcome(result, seen), [])
    apart = text.clear(gaps, atoms)
    own = text.counted(apart)
    gone = sum(atom.end - atom.start for atom in apart if not atom.new)
    seen = replace(seen, clear=sum(own.values()) - track.gain.shared(own) + gone)
    return _torn(store, track, base, ours, theirs, hunks, seen, merged)


def _torn(
    store: Store,
    track: Track,
    base: Blob,
    ours: Blob,
    theirs: Blob,
    hunks: Sequence[Hunk],
    seen: FileSeen,
    merged: Merged,
) -> Outcome:
    wins, mine = text.sides(merged.data, (base.data, ours.data, theirs.data)) or (
        store.merge_file(base.data, ours.data, theirs.data, favour="ours").data,
        store.merge_file(base.data, ours.data, theirs.data, favour="theirs").data,
    )
    kind = "both added the file" if track.old is None else "content"
    seen = replace(
        seen,
        merge="conflict",
        kind=kind,
        wins_empty=wins == ours.data and theirs.mode == ours.mode,
        reverse=_reverse(ours.data, hunks),
    )
    yielding = Blob(theirs.mode, wins)
    return Outcome(Blob(theirs.mode, mine), seen, None, merged.data, yielding)


def _once(track: Track, theirs: Blob, ours: Blob, outcome: Outcome, moved: list[Atom]) -> Outcome:
    """Nothing that upstream added elsewhere in the file may stand twice.

    A block is left out where upstream has it verbatim and keeping it would define a name twice
    (in Python), or where it is a whole definition of three lines or more (in C-like languages).
    `moved` are the atoms on the new side; none after a real merge.
    """
    assert outcome.result is not None
    if track.path.endswith(b".py"):
        twice = _twice(track, outcome.result, ours, theirs, moved)
        short = {name.rpartition(".")[2].encode() for name in twice}
        left_out = [atom for atom in moved if short and named(text.block(atom)) & short]
    else:
        twice = ()
        left_out = [atom for atom in moved if outcome.seen.found and _top_block(atom, track)]
    left_out = [atom for atom in left_out if text.holds(ours.data, text.block(atom))]
    if not left_out:
        return replace(outcome, seen=replace(outcome.seen, doubles=twice)) if twice else outcome
    kept = [atom for atom in moved if atom not in left_out]
    again = Blob(theirs.mode, b"".join(text.replace(ours.lines, kept)))
    twice = _twice(track, again, ours, theirs, kept) if twice else ()
    seen = replace(outcome.seen, elsewhere=len(left_out), doubles=twice)
    return Outcome(again, replace(seen, merge=_left(again, ours)), None)


def _twice(
    track: Track, result: Blob, ours: Blob, theirs: Blob, moved: list[Atom]
) -> tuple[str, ...]:
    """Names that `result` would define twice; sources are parsed only where it may be."""
    added = b"".join(text.block(atom) + b"\n" for atom in moved) if moved else theirs.data
    if not track.gain.defines(named(added)):
        return ()
    return doubles(result.data, ours.data, theirs.data)


def _top_block(atom: Atom, track: Track) -> bool:
    """Whether an atom is a whole definition of a C-like language that upstream added too.

    Elsewhere (settings, lists, documents) the same lines in two places are no mistake.
    """
    if not track.path.endswith(C_LIKE):
        return False
    lines = [line.rstrip(b"\r\n") for line in atom.new if line.strip()]
    if len(lines) < 3 or lines[0][:1].isspace() or lines[-1][:1] != b"}":
        return False
    return not Counter(lines) - track.gain.lines


def _reverse(data: bytes, hunks: Sequence[Hunk]) -> bool:
    """Whether the patch's result stands in `data`, and what it starts from does not.

    Hunks that only remove lines say nothing: their result is context.
    """
    telling = [hunk for hunk in hunks if any(atom.new for atom in hunk.atoms)]
    return (
        bool(telling)
        and all(b"".join(hunk.new) in data for hunk in telling)
        and not any(b"".join(hunk.old) in data for hunk in telling)
    )


def _left(merged: Blob, ours: Blob) -> Literal["clean", "empty"]:
    return "empty" if merged == ours else "clean"


def _equal(one: Blob | None, other: Blob | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.mode == other.mode and one.data == other.data


def _mode(base: Blob | None, ours: Blob, theirs: Blob) -> str | None:
    """The merged mode, or None where both sides changed it differently."""
    before = base.mode if base is not None else theirs.mode
    if ours.mode == theirs.mode or theirs.mode == before:
        return ours.mode
    return theirs.mode if ours.mode == before else None


def _conflict(theirs: Blob | None, seen: FileSeen, kind: str, marked: bytes = b"") -> Outcome:
    return Outcome(theirs, replace(seen, merge="conflict", kind=kind), None, marked)


def opposed(
    ours: Blob | None, base: Blob | None, theirs: Blob | None, labels: tuple[str, str, str]
) -> bytes:
    """Whole files between conflict markers, where one side has none; nothing without texts."""
    sides = (ours, base, theirs)
    if not all(side.mergeable for side in sides if side is not None):
        return b""
    return text.opposed([side.data if side is not None else b"" for side in sides], labels)
