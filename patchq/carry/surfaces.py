"""The modules of a tree as the judge reads them, kept by blob in the user's cache."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from patchq.caches import keep
from patchq.gitstore.objects import TREE
from patchq.gitstore.store import Store
from patchq.judge import surface_form as form
from patchq.judge.surface import READER, Surface, read

ROOTS = ("", "src/")
"""Where a source tree keeps its packages."""


class Surfaces:
    """Surfaces of `store`'s blobs; `folder` (in the cache) may be removed at any time."""

    def __init__(self, store: Store, folder: Path) -> None:
        self._store = store
        self._folder = folder / f"surfaces-{READER}"
        self._known: dict[tuple[str, str], Surface | None] = {}

    def of(self, tree: str) -> Callable[[str], Surface | None]:
        """The modules of `tree` by dotted name; None for what does not stand there."""
        seen: dict[str, Surface | None] = {}

        def surface(module: str) -> Surface | None:
            if module not in seen:
                seen[module] = self._find(tree, module)
            return seen[module]

        return surface

    def place(self, tree: str, module: str) -> bytes | None:
        """The file of `module` in `tree`."""
        for root in ROOTS:
            path = root + module.replace(".", "/")
            for file in (f"{path}/__init__.py", f"{path}.py"):
                if self._store.objects.lookup(tree, file.encode()) is not None:
                    return file.encode()
        return None

    def _find(self, tree: str, module: str) -> Surface | None:
        file = self.place(tree, module)
        if file is not None:
            entry = self._store.objects.lookup(tree, file)
            assert entry is not None
            return self._read(module, entry.oid, package=file.endswith(b"/__init__.py"))
        for root in ROOTS:
            entry = self._store.objects.lookup(tree, (root + module.replace(".", "/")).encode())
            if entry is not None and entry.mode == TREE and "." in module:
                # A folder without __init__.py inside of a package.
                return Surface({})
        return None

    def _read(self, module: str, oid: str, *, package: bool) -> Surface | None:
        key = (module, oid)
        if key not in self._known:
            kept = self._folder / oid[:2] / f"{oid}-{module}.json"
            surface = _kept(kept)
            if surface is None:
                surface = read(module, self._store.objects.blob(oid), package=package)
                if surface is not None:
                    keep(kept, json.dumps(form.to_json(surface)).encode())
            self._known[key] = surface
        return self._known[key]


def _kept(file: Path) -> Surface | None:
    try:
        return form.from_json(json.loads(file.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError):
        return None
