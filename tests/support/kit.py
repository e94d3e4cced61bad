"""Parts of a queue as values, for tests of single rooms: releases, patches, hunks."""

from __future__ import annotations

import difflib
from itertools import pairwise
from pathlib import Path

from patchq.carry.fold import Release
from patchq.gitstore.store import Store
from patchq.queue import header as headers
from patchq.queue import patch as patches
from patchq.queue.diff import Atom, Hunk
from patchq.queue.patch import Patch
from tests.support.history import History, git


class Kit:
    """A small upstream and its store. Trees are named by tags and branches of `history`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.history = History(folder / "kit.git")
        self._store: Store | None = None

    @property
    def store(self) -> Store:
        """The store, once the history is told."""
        if self._store is None:
            self.history.save()
            self._store = Store(self.history.path)
        return self._store

    def close(self) -> None:
        if self._store is not None:
            self._store.close()

    def release(self, ref: str) -> Release:
        commit = self.store.resolve(ref)
        assert commit is not None, ref
        return Release(ref, commit, self.store.objects.tree_of(commit))

    def tree(self, ref: str) -> str:
        return self.release(ref).tree

    def patch(self, old: str, new: str, number: int = 1, **fields: str) -> Patch:
        """What changed from `old` to `new`, called like `new` (`check="..."` gives it a check)."""
        (diff,) = self.store.diff_texts([(self.tree(old), self.tree(new))])
        return made(number, new, diff, **fields)

    def series(self, *refs: str) -> tuple[Patch, ...]:
        """One patch for each ref after the first."""
        return tuple(
            self.patch(old, new, number) for number, (old, new) in enumerate(pairwise(refs), 1)
        )

    def content(self, tree: str, path: str) -> bytes | None:
        entry = self.store.objects.lookup(tree, path.encode())
        return self.store.objects.blob(entry.oid) if entry else None


def made(number: int, name: str, diff: bytes, **fields: str) -> Patch:
    given = [("From", "Ada <ada@example.org>"), ("Date", "Thu, 2 Jan 2025 03:04:05 +0200")]
    given += [("Subject", f"About {name}")]
    given += [(f"Patchq-{key.replace('_', '-').title()}", value) for key, value in fields.items()]
    return patches.make(number, name, headers.make(given, "Why."), diff)


def hunks_between(old: list[bytes], new: list[bytes], context: int = 3) -> tuple[Hunk, ...]:
    """Hunks as a diff would have them."""
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    found = []
    for group in matcher.get_grouped_opcodes(context):
        start, end = group[0][1], group[-1][2]
        to_start, to_end = group[0][3], group[-1][4]
        atoms = tuple(
            Atom(i1, i2, tuple(new[j1:j2])) for tag, i1, i2, j1, j2 in group if tag != "equal"
        )
        found.append(Hunk(start, tuple(old[start:end]), tuple(new[to_start:to_end]), atoms))
    return tuple(found)


def bare_repository(path: Path) -> Path:
    """A repository without hooks and templates: quick to make and to copy."""
    path.mkdir(parents=True, exist_ok=True)
    git(path, "init", "-q", "--template=", "-b", "main")
    return path
