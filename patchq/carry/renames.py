"""Where files went between two releases.

A search over whole trees is dear (0.2 to 0.9 s on vLLM): it is made when a touched path is gone,
and kept in the store for each pair of trees.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property

from patchq.gitstore.files import write
from patchq.gitstore.store import Store


class Renames:
    """Upstream's renames from tree `old` to tree `new`, looked up when first needed."""

    def __init__(self, store: Store, old: str, new: str) -> None:
        self._store = store
        self._old = old
        self._new = new

    def new_name(self, path: bytes, *, existed: bool) -> bytes:
        """Where `path` is now; a new file follows a folder that moved as a whole."""
        if existed:
            return self._pairs.get(path, path)
        folder = path.rpartition(b"/")[0]
        while folder:
            if self._store.objects.lookup(self._new, folder) is not None:
                return path
            if self._store.objects.lookup(self._old, folder) is not None:
                target = self._folder(folder)
                return target + path[len(folder) :] if target is not None else path
            folder = folder.rpartition(b"/")[0]
        return path

    def _folder(self, folder: bytes) -> bytes | None:
        """The folder to which most files of `folder` went, if the whole folder is gone."""
        went: Counter[bytes] = Counter()
        for old, new in self._pairs.items():
            inside = old[len(folder) :]
            if old.startswith(folder + b"/") and new.endswith(inside):
                went[new[: len(new) - len(inside)]] += 1
        return went.most_common(1)[0][0] if went else None

    @cached_property
    def _pairs(self) -> dict[bytes, bytes]:
        kept = self._store.path / "patchq-renames" / f"{self._old}-{self._new}"
        try:
            fields = kept.read_bytes().split(b"\0")
        except OSError:
            found = self._store.changes(self._old, self._new, renames=True)
            pairs = [(c.path, c.new_path) for c in found if c.status == "R"]
            fields = [part for pair in pairs for part in pair]
            write(kept, b"\0".join(fields))
        return dict(zip(fields[::2], fields[1::2], strict=False))
