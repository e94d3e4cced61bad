"""The working tree of a session: a patch's conflict as files, and what a person made of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from itertools import count

from patchq.carry import exchange, session
from patchq.carry.clash import shown
from patchq.carry.fold import Carried
from patchq.carry.message import ident, message
from patchq.carry.resolutions import NOBODY
from patchq.carry.session import Session, Shown, Switch
from patchq.config import Project
from patchq.gitstore.fastimport import Write
from patchq.gitstore.objects import TREE
from patchq.gitstore.store import Store
from patchq.gitstore.worktree import EMPTY_TREE, Worktree, is_litter
from patchq.paths import require_inside


@dataclass(frozen=True)
class Picture:
    """A stopped patch in trees: before it, without what conflicts, and as it is shown.

    `head` and `commit` are the commits of the first and the last.
    """

    patch: str
    head: str
    commit: str
    before: str
    clean: str
    tree: str

    @property
    def shown(self) -> Shown:
        return Shown(self.patch, self.tree, self.head)


def picture(store: Store, carried: Carried) -> Picture:
    """Write the trees that show what stopped `carried`."""
    stop = carried.stop
    assert stop is not None, f"{carried.patch.name} does not ask"
    head = str(stop.parent)
    marked = shown(stop.clashes, carried.patch.name, standing(store, carried.before))
    # A patch without a conflict is a question: it is shown as it merges.
    with store.fast_import(compression=0) as importer:
        clean = importer.commit(message(carried.patch), ident(carried.patch), head, stop.writes)
        importer.commit(message(carried.patch), ident(carried.patch), clean, marked)
        ids = importer.finish()
    trees = store.objects.trees_of(ids)
    return Picture(carried.patch.name, head, ids[1], carried.before, *trees)


def standing(store: Store, tree: str) -> Callable[[bytes], bool]:
    """Whether a file stands at a path of `tree`."""

    def stands(path: bytes) -> bool:
        entry = store.objects.lookup(tree, path)
        return entry is not None and entry.mode != TREE

    return stands


class Stand:
    """The working tree of the session of one queue."""

    def __init__(self, project: Project, store: Store, queue: str) -> None:
        self._project = project
        self._store = store
        self.folder = session.tree_of(project, queue)
        self._kept = project.private / "kept" / queue
        self._tree = Worktree(store, self.folder, session.folder_of(project, queue) / "git")

    def mended(self, now: Session) -> Session:
        """Complete a switch that was interrupted; make an index that is gone anew."""
        shown = now.shown
        if not self._tree.exists or shown is None:
            return now
        if now.switch is not None:
            self._tree.repair(now.switch.old, now.switch.new, now.switch.head)
            now = replace(now, switch=None)
            session.save(self._project, now)
        else:
            self._tree.ensure(shown.tree)
        return now

    def show(self, now: Session, wanted: Picture, *, taken: str = "") -> tuple[Session, str]:
        """Have the tree show `wanted`; the session as it is then, and a sentence about edits.

        `taken` is the tree whose edits are in the session already; other edits are kept aside.
        """
        old, told = EMPTY_TREE, ""
        if self._tree.exists and now.shown == wanted.shown and not taken:
            session.save(self._project, now)
            return now, told
        if self._tree.exists:
            old = self.written()
            if now.shown is not None and old not in (taken, now.shown.tree):
                told = self._keep(now.shown, old)
        now = replace(
            now,
            shown=wanted.shown,
            switch=Switch(old, wanted.tree, wanted.head),
        )
        session.save(self._project, now)
        if old != EMPTY_TREE:
            # What was taken from the tree, or kept, is no edit any more.
            (self._tree.git_dir / "patchq.index").unlink(missing_ok=True)
        self._tree.ensure(old)
        self._tree.switch(old, wanted.tree, wanted.head)
        now = replace(now, switch=None)
        session.save(self._project, now)
        return now, told

    @property
    def exists(self) -> bool:
        return self._tree.exists

    def written(self) -> str:
        """The tree that stands there. What builds and editors leave behind is none of it."""
        edits = self._tree.edits()
        return self._tree.write_tree(
            each for each in edits if each.kind != "added" or not is_litter(each.path)
        )

    def over(self, before: Shown, wanted: Picture, torn: Set[bytes]) -> str | None:
        """What stands there, put on what is to be shown now; None where it does not fit.

        The series may have been changed since the tree was shown; neither a conflict (`torn`)
        nor an edited file may look different then.
        """
        tree = self.written()
        if before == wanted.shown:
            return tree
        edits = self._store.changes(before.tree, tree)
        moved = {each.path for each in self._store.changes(before.tree, wanted.tree)}
        if before.patch != wanted.patch or moved & (torn | {each.path for each in edits}):
            return None
        writes = [
            Write(each.path, each.new_mode, oid=each.new_oid)
            if each.status != "D"
            else Write(each.path)
            for each in edits
        ]
        with self._store.fast_import(compression=0) as importer:
            importer.commit(b"edited", NOBODY, wanted.commit, writes)
            (commit,) = importer.finish()
        return self._store.objects.tree_of(commit)

    def _keep(self, before: Shown, tree: str) -> str:
        """Put what was edited for a patch aside, where nothing overwrites it."""
        edits = [each for each in self._store.changes(before.tree, tree) if each.status != "D"]
        names = (self._kept / f"{before.patch}-{n}" for n in count(1))
        place = next(path for path in names if not path.exists())
        for each in edits:
            require_inside(each.path, "the session's tree")
            path = place / os.fsdecode(each.path)
            path.parent.mkdir(parents=True, exist_ok=True)
            exchange.write_new(path, self._store.objects.blob(each.new_oid))
        return f"What you edited for {before.patch} is kept in {place}."
