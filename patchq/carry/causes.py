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
from patchq.gitstore import contents, log
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
    search = _Search(store, carry, range_)
    asked = [
        search.question(each, conflict)
        for each in carry.patches
        for conflict in each.judgement.conflicts
    ]
    if not asked:
        return carry
    try:
        search.bring([each for each in asked if search.kept(each) is None])
    except PatchqError as error:
        range_.failed = error.message
        return carry
    found: dict[str, list[Conflict]] = {}
    for each in asked:
        found.setdefault(each.name, []).append(
            replace(each.conflict, causes=tuple(map(cause_of, search.answer(each))))
        )
    return replace(
        carry,
        patches=tuple(
            replace(each, judgement=replace(each.judgement, conflicts=tuple(conflicts)))
            if (conflicts := found.get(each.patch.name))
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

    @property
    def said(self) -> str:
        """What decides where it conflicts, in a line."""
        theirs = f"{self.theirs.mode} {self.theirs.oid}" if self.theirs else "none"
        return f"{theirs} {self.kept} {self.kind} {bool(self.hunks)}"


@dataclass(frozen=True)
class _Question:
    """A conflict of the patch `name`: what earlier patches and this one make of the path, the file
    before this one, and the path's names. `key`: all that decides the answer.
    """

    name: str
    conflict: Conflict
    before: list[_Made]
    last: _Made | None
    base: Blob | None
    names: list[bytes]
    key: bytes


class _Search:
    """Finds causes; `_tracks` holds what one path was at each commit, for all its changes."""

    def __init__(self, store: Store, carry: Carry, range_: Range) -> None:
        self._store = store
        self._carry = carry
        self._range = range_
        self._tracks: dict[str, tuple[str, Track]] = {}
        self._chains: dict[tuple[bytes, ...], list[Commit]] = {}

    @cached_property
    def _commits(self) -> dict[str, Commit]:
        return {each.id: each for each in self._range.commits}

    @cached_property
    def _line(self) -> list[Commit]:
        return line(self._commits, self._range.new)

    def question(self, carried: Carried, conflict: Conflict) -> _Question:
        names = [conflict.path, *filter(None, [carried.moved.get(conflict.path)])]
        before, last, base = self._made(carried, conflict.path)
        said = [each.said for each in (*before, last) if each is not None]
        ends = (self._range.old, self._range.new, self._carry.old.tree, conflict.kind)
        key = contents.question(b"causes", *names, "\n".join((*ends, *said)).encode())
        return _Question(carried.patch.name, conflict, before, last, base, names, key)

    def kept(self, asked: _Question) -> list[Commit] | None:
        """The answer that was found before."""
        kept = self._store.memo.get(asked.key)
        ids = kept.decode().split() if kept is not None else []
        if kept is None or not all(each in self._commits for each in ids):
            return None
        return [self._commits[each] for each in ids]

    def bring(self, asked: Sequence[_Question]) -> None:
        """Have the contents of all commits that may be tried."""
        paths = {path for each in asked for path in each.names}
        only = [
            replace(each, changes=tuple(c for c in each.changes if c.path in paths))
            for each in touching(self._range.commits, sorted(paths))
        ]
        log.bring(self._range.store, only, offline=self._range.offline)

    def answer(self, asked: _Question) -> list[Commit]:
        """The commits that cause the conflict, in upstream's order."""
        if (kept := self.kept(asked)) is not None:
            return kept
        found = self._causes(asked)
        answer = [each for each in self._range.commits if each.id in found]
        self._store.memo.put(asked.key, " ".join(each.id for each in answer).encode())
        return answer

    def _chain(self, names: list[bytes]) -> list[Commit]:
        """Of upstream's line the commits that touch the path."""
        if tuple(names) not in self._chains:
            self._chains[tuple(names)] = touching(self._line, names)
        return self._chains[tuple(names)]

    def _causes(self, asked: _Question) -> dict[str, Commit]:
        before, last, names = asked.before, asked.last, asked.names
        if last is None:
            return {}
        self._tracks.clear()
        found: dict[str, Commit] = {}
        if asked.conflict.kind in TEXTS:
            parts = self._parts(before, last, asked.base, names)
        else:
            parts = [replace(last, kind=asked.conflict.kind)]
        for one in parts:
            commit = self._find(before, one, names, self._chain(names), found)
            if commit is not None:
                found[commit.id] = commit
        return found

    def _made(self, carried: Carried, path: bytes) -> tuple[list[_Made], _Made | None, Blob | None]:
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
        return before, None, base

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
            return self._find(before, one, names, touching(side, names), known) or commit
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
