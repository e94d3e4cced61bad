"""Write a tree to disk byte for byte: no filters, no attributes, no line-ending conversion."""

from __future__ import annotations

import os
from pathlib import Path

from patchq.gitstore.objects import GITLINK
from patchq.gitstore.store import Store
from patchq.paths import require_inside

AT_ONCE = 64


def check_out(store: Store, tree: str, folder: Path) -> None:
    """Write every file of `tree` below the empty `folder`; submodules become empty folders."""
    made: set[str] = set()
    plain: list[tuple[str, str, str]] = []
    for path, entry in store.objects.walk(tree):
        require_inside(path, "the tree")
        target = os.path.join(folder, os.fsdecode(path))
        parent = os.path.dirname(target)
        if parent not in made:
            os.makedirs(parent, exist_ok=True)
            made.add(parent)
        if entry.mode == GITLINK:
            os.makedirs(target, exist_ok=True)
        else:
            plain.append((target, entry.mode, entry.oid))
    # Links last: nothing is ever written through one.
    plain.sort(key=lambda item: item[1] == "120000")
    for start in range(0, len(plain), AT_ONCE):
        chunk = plain[start : start + AT_ONCE]
        contents = store.objects.read_many(oid for _, _, oid in chunk)
        for (target, mode, _), (_, _, data) in zip(chunk, contents, strict=True):
            if mode == "120000":
                os.symlink(os.fsdecode(data), target)
                continue
            bits = 0o755 if mode == "100755" else 0o644
            with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, bits), "wb") as file:
                file.write(data)
