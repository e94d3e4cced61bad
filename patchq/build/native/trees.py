"""Source trees to plan from: those of the store."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from patchq.gitstore.store import Store
from patchq.paths import lossless

_FILES = ("100644", "100755")


class StoreTree:
    """A tree of the store; links and submodules are no files."""

    def __init__(self, store: Store, tree: str) -> None:
        self._store = store
        self._tree = tree
        self._read: dict[str, bytes] = {}

    @cached_property
    def _files(self) -> dict[str, str]:
        walked = self._store.objects.walk(self._tree)
        return {lossless(path): each.oid for path, each in walked if plain(each.mode)}

    def read(self, path: str) -> bytes | None:
        known = self._read.get(path)
        if known is None and path in self._files:
            known = self._read[path] = self._store.objects.blob(self._files[path])
        return known

    def paths(self) -> Iterator[str]:
        return iter(self._files)


def plain(mode: str) -> bool:
    """Whether a git mode is that of a file with a content of its own."""
    return mode in _FILES
