"""The upstream commits that made a patch conflict: found by bisection, in memory.

At each commit that is tried, the patches that touch the path are merged onto the file as it was
then; no tree is checked out and nothing is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from patchq.carry.fold import Carried, Carry
from patchq.carry.merge import Blob, Outcome, Track, merge
from patchq.carry.ranges import Range
from patchq.carry.tracks import after, files_of
from patchq.errors import PatchqError
from patchq.gitstore import log
from patchq.gitstore.log import Commit
from patchq.gitstore.objects import GITLINK, TREE
from patchq.gitstore.store import Store
from patchq.judge.causes import first_bad, line, touching
from patchq.judge.commits import Told
from patchq.judge.model import Cause, Conflict
from patchq.queue.diff import Atom, Hunk

LABELS = ("ours", "base", "theirs")
TEXTS = ("content", "both added the file")
"""Kinds of conflicts in which each change can have a cause of its own."""
ATOMS = 12
"""Conflicting changes of one file that are each traced to a commit of their own."""


def with_causes(store: Store, carry: Carry, range_: Range) -> Carry:
    """The carry with the causes of every conflict that it asks about."""
    torn = [each for each in carry.patches if each.judgement.conflicts]
    if not torn:
        return carry
    search = _Search(store, carry, range_)
    try:
        search.bring(torn)
    except PatchqError as error:
        range_.failed = error.message
        return carry
    found = {each.patch.name: search.of(each) for each in torn}
    return replace(
        carry,
        patches=tuple(
            replace(each, judgement=replace(each.judgement, conflicts=found[each.patch.name]))
            if each.patch.name in found
            else each
            for each in carry.patches
        ),
    )


@dataclass(frozen=True)
class _Made:
    """What one patch makes of the path: the whole file, the hunks, whether it is carried on.

    `kind`: only a conflict of this kind counts; "" for any.
    """

    theirs: Blob | None
    hunks: tuple[Hunk, ...]
    kept: bool
    kind: str = ""


class _Search:
    """Finds causes; `_tracks` holds what one path was at each commit, for all its changes."""

    def __init__(self, store: Store, carry: Carry, range_: Range) -> None:
        self._store = store
        self._carry = carry
        self._range = range_
        self._tracks: dict[str, tuple[str, Track]] = {}

    @cached_property
    def _commits(self) -> dict[str, Commit]:
        return {each.id: each for each in self._range.commits}

    @cached_property
    def _line(self) -> list[Commit]:
        return line(self._commits, self._range.new)

    def bring(self, torn: Sequence[Carried]) -> None:
        paths = {
            path
            for each in torn
            for conflict in each.judgement.conflicts
            for path in self._names(each, conflict)
        }
        every = touching(self._range.commits, sorted(paths))
        only = [
            replace(each, changes=tuple(c for c in each.changes if c.path in paths))
            for each in every
        ]
        log.bring(self._range.store, only, offline=self._range.offline)

    def of(self, carried: Carried) -> tuple[Conflict, ...]:
        return tuple(
            replace(conflict, causes=self._causes(carried, conflict))
            for conflict in carried.judgement.conflicts
        )

    def _names(self, carried: Carried, conflict: Conflict) -> list[bytes]:
        return [conflict.path, *filter(None, [carried.moved.get(conflict.path)])]

    def _causes(self, carried: Carried, conflict: Conflict) -> tuple[Cause, ...]:
        made = self._made(carried, conflict.path)
        if made is None:
            return ()
        before, last, base = made
        names = self._names(carried, conflict)
        self._tracks.clear()
        found: dict[str, Commit] = {}
        if conflict.kind in TEXTS:
            parts = self._parts(before, last, base, names)
        else:
            parts = [replace(last, kind=conflict.kind)]
        for one in parts:
            commit = self._find(before, one, names, self._line, found)
            if commit is not None:
                found[commit.id] = commit
        order = [each.id for each in self._range.commits if each.id in found]
        return tuple(cause_of(found[oid]) for oid in order)

    def _made(self, carried: Carried, path: bytes) -> tuple[list[_Made], _Made, Blob | None] | None:
        """What the earlier patches and this one make of the path, and the file before this one."""
        base = self._blob(self._store, self._carry.old.tree, path)
        before: list[_Made] = []
        for each in self._carry.patches:
            file = next((f for f in files_of(each.patch) if f.path == path), None)
            if file is not None:
                theirs = after(base, file, each.patch)
                hunks = () if file.whole or file.binary else file.hunks
                made = _Made(theirs, hunks, each.commit is not None)
                if each is carried:
                    return before, made, base
                before.append(made)
                base = theirs
        return None

    def _parts(
        self, before: list[_Made], last: _Made, base: Blob | None, names: list[bytes]
    ) -> list[_Made]:
        """The changes that conflict by themselves, else the whole."""
        atoms = [atom for hunk in last.hunks for atom in hunk.atoms]
        if base is None or last.theirs is None or len(atoms) < 2:
            return [last]
        alone = [_only(base, last.theirs.mode, atom) for atom in atoms]
        torn = [one for one in alone if self._conflicts(before, one, names, self._range.new)]
        return torn[:ATOMS] or [last]

    def _find(
        self,
        before: list[_Made],
        one: _Made,
        names: list[bytes],
        chain: list[Commit],
        known: dict[str, Commit],
    ) -> Commit | None:
        chain = touching(chain, names)
        for each in chain:
            if each.id in known and self._turns(before, one, names, each):
                return None
        place = first_bad(
            len(chain),
            lambda at: self._conflicts(before, one, names, chain[at].id),
            lambda: (
                bool(chain[0].parents) and self._conflicts(before, one, names, chain[0].parents[0])
            ),
        )
        if place is None:
            return None
        commit = chain[place]
        if len(commit.parents) > 1 and Told(commit).own is None:
            # The merge of a branch: one of its commits did it.
            mine = set(self._line_ids(commit.parents[0]))
            side = [c for c in line(self._commits, commit.parents[1]) if c.id not in mine]
            return self._find(before, one, names, side, known) or commit
        return commit

    def _line_ids(self, tip: str) -> list[str]:
        return [each.id for each in line(self._commits, tip)]

    def _turns(self, before: list[_Made], one: _Made, names: list[bytes], each: Commit) -> bool:
        return self._conflicts(before, one, names, each.id) and not self._conflicts(
            before, one, names, each.parents[0]
        )

    def _conflicts(self, before: list[_Made], one: _Made, names: list[bytes], commit: str) -> bool:
        """Whether the change conflicts with upstream as it was at `commit`."""
        if commit not in self._tracks:
            self._tracks[commit] = self._track(before, names, commit)
        tree, track = self._tracks[commit]
        seen = self._merge(track, one).seen
        if seen.merge == "conflict" and one.kind in ("", seen.kind):
            return True
        return self._stands_in_way(tree, one, track)

    def _track(self, before: list[_Made], names: list[bytes], commit: str) -> tuple[str, Track]:
        """The tree of `commit`, and the file there with the earlier patches on it."""
        tree = self._range.store.objects.tree_of(commit)
        new = next(
            (blob for name in names if (blob := self._blob(self._range.store, tree, name))), None
        )
        old = self._blob(self._store, self._carry.old.tree, names[0])
        track = Track(names[0], names[-1], old, new)
        for each in before:
            outcome = self._merge(track, each)
            track.old, track.gaps = each.theirs, None
            # What was dropped gave way to upstream's text, where that had it already.
            if each.kept or outcome.seen.merge != "conflict":
                track.new = outcome.result
        return tree, track

    def _merge(self, track: Track, made: _Made) -> Outcome:
        return merge(self._store, track, made.theirs, made.hunks, LABELS)

    def _stands_in_way(self, tree: str, one: _Made, track: Track) -> bool:
        """Whether a folder stands where the patch adds a file, or a file where a folder must be."""
        if one.theirs is None or track.new is not None:
            return False
        lookup = self._range.store.objects.lookup
        if lookup(tree, track.path) is not None:
            return True
        parts = track.path.split(b"/")
        above = (lookup(tree, b"/".join(parts[:end])) for end in range(1, len(parts)))
        return any(entry is not None and entry.mode != TREE for entry in above)

    @staticmethod
    def _blob(store: Store, tree: str, path: bytes) -> Blob | None:
        entry = store.objects.lookup(tree, path)
        if entry is None or entry.mode in (TREE, GITLINK):
            return None
        return Blob(entry.mode, store.objects.blob(entry.oid))


def _only(base: Blob, mode: str, atom: Atom) -> _Made:
    """One change of a patch by itself."""
    old = tuple(base.lines[atom.start : atom.end])
    data = b"".join([*base.lines[: atom.start], *atom.new, *base.lines[atom.end :]])
    return _Made(Blob(mode, data), (Hunk(atom.start, old, atom.new, (atom,)),), kept=True)


def cause_of(commit: Commit) -> Cause:
    """The commit as a cause, with the pull request that its words name."""
    told = Told(commit)
    pr = f"#{told.own}" if told.own else None
    return Cause(commit.id, pr, commit.subject, commit.author, commit.date)
