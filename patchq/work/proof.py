"""The runner tree after a refresh, by git's own applier.

Each diff is one of single files: what the series was proved to be holds for all files that the
refresh does not change, and only the others are applied anew.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from patchq.carry.workspace import Queue
from patchq.gitstore.files import parents
from patchq.gitstore.store import Index, Store
from patchq.queue.series import Series
from patchq.work.restack import names_any, split


def tree_after(queue: Queue, store: Store, after: Series, paths: Sequence[bytes]) -> str:
    """The tree of `after`, which differs from the proved series in `paths` only.

    Empty where it does not apply.
    """
    diffs: list[bytes] = []
    above = {parent for path in paths for parent in parents(path)}
    for patch in after.applied:
        if not names_any(patch, paths):
            continue
        if patch.files is None or any(_displaces(file.path, paths, above) for file in patch.files):
            return whole_tree(store, queue.state.tree, after)
        found = split(patch.diff)
        diffs.append(b"".join(found[path] for path in paths if path in found))
    entries = [store.objects.lookup(queue.state.tree, path) for path in paths]
    lines = [
        b"%s %s\t%s\0" % (e.mode.encode(), e.oid.encode(), path) if e else _GONE + path + b"\0"
        for path, e in zip(paths, entries, strict=True)
    ]
    with tempfile.TemporaryDirectory(prefix="patchq-") as folder:
        place = Path(folder) / "index"
        index = Index(store, place)
        index.read(queue.state.runner_tree)
        store.git(
            ["update-index", "-z", "--index-info"],
            input=b"".join(lines),
            env={"GIT_INDEX_FILE": str(place)},
        )
        return _applied(index, diffs)


def _displaces(path: bytes, paths: Sequence[bytes], above: set[bytes]) -> bool:
    """Whether no file can stand at `path` beside one of `paths`: then they are not alone."""
    return path in above or not set(paths).isdisjoint(parents(path))


def whole_tree(store: Store, base: str, after: Series) -> str:
    """The tree of the whole series on `base`; empty where it does not apply."""
    with store.index(base) as index:
        return _applied(index, [patch.diff for patch in after.applied])


def _applied(index: Index, diffs: Sequence[bytes]) -> str:
    """One file a patch, as the series is applied: within one input git looks ahead."""
    with tempfile.TemporaryDirectory(prefix="patchq-") as folder:
        files = []
        for number, diff in enumerate(filter(None, diffs)):
            files.append(Path(folder) / f"{number}.patch")
            files[-1].write_bytes(diff)
        if files and index.apply(files).code != 0:
            return ""
    return index.write()


_GONE = b"0 " + b"0" * 40 + b"\t"
