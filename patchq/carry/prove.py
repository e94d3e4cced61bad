"""The proof: the series as it will be written gives the carried tree, and the tree is sound.

`git apply` applies it, not our own arithmetic; every changed Python file must compile; nothing
may be defined twice that was defined once; every check that a patch brings must pass.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from patchq.carry.ahead import ahead
from patchq.carry.report import Check, Proof
from patchq.gitstore.git import Done
from patchq.gitstore.store import Store
from patchq.judge.definitions import doubles, may_repeat
from patchq.paths import show
from patchq.progress import SILENT, Progress
from patchq.queue.patch import Patch


def prove(
    store: Store,
    base: str,
    series: Sequence[Patch],
    tree: str,
    *,
    patched_before: Callable[[bytes], bytes | None] | None = None,
    run_checks: Callable[[Store, str, Sequence[Patch]], list[Check]] | None = None,
    progress: Progress = SILENT,
) -> Proof:
    """Prove that `series` on the tree `base` is the tree `tree`, and that it is sound.

    `patched_before` gives a path's patched content on the release before; `run_checks` runs what
    the patches bring, in the patched tree.
    """
    progress.step("proving: git apply, Python files")
    with ahead(lambda: apply_check(store, base, series, tree)) as applied:
        checks = sound(store, base, tree, patched_before, series)
    checks.insert(0, applied())
    if run_checks is not None and all(check.ok for check in checks):
        checks += run_checks(store, tree, series)
    return Proof(tuple(checks))


def apply_check(store: Store, base: str, series: Sequence[Patch], tree: str) -> Check:
    """The series, applied by `git apply` to the bare base, gives the tree, byte for byte."""
    name = "git apply"
    if not series:
        return Check(name, base == tree, "no patches" if base == tree else "the tree differs")
    with tempfile.TemporaryDirectory(prefix="patchq-") as folder:
        files = []
        for patch in series:
            path = Path(folder) / patch.file
            path.write_bytes(patch.text)
            files.append(path)
        with store.index(base) as index:
            done = index.apply(files)
            got = index.write() if done.code == 0 else ""
        if got == tree:
            return Check(name, True, f"{len(series)} patches give {tree}")
        return _culprit(store, base, files, tree)


def _culprit(store: Store, base: str, files: Sequence[Path], tree: str) -> Check:
    """One by one: names the patch at which it fails."""
    with store.index(base) as index:
        for path in files:
            done: Done = index.apply([path])
            if done.code != 0:
                return Check("git apply", False, f"{path.name}: {done.why}")
        got = index.write()
    ok = got == tree
    return Check(
        "git apply", ok, f"{len(files)} patches give {got}" + ("" if ok else f", not {tree}")
    )


def sound(
    store: Store,
    base: str,
    tree: str,
    patched_before: Callable[[bytes], bytes | None] | None = None,
    series: Sequence[Patch] = (),
) -> list[Check]:
    """Every changed Python file compiles, and defines nothing twice that stood once.

    `series` narrows the search for what stands twice to names that its patches define.
    """
    added = _added(series)
    changes = [
        change
        for change in store.changes(base, tree)
        if change.path.endswith(b".py") and change.status != "D" and change.new_mode != "120000"
    ]
    blobs = store.objects.blobs(change.new_oid for change in changes)
    broken: list[str] = []
    twice: list[str] = []
    old_ids = {change.path: change.old_oid for change in changes if change.status != "A"}
    before = _Before(store, old_ids, patched_before)
    for change in changes:
        data = blobs[change.new_oid]
        why = compiles(data, show(change.path))
        if why is not None:
            # What upstream itself ships broken (test data, another Python) is not ours.
            upstreams = before.upstream(change.path)
            if upstreams is None or compiles(upstreams, "") is None:
                broken.append(f"{show(change.path)}: {why}")
            continue
        if may_repeat(data, added.get(change.path) if added is not None else None):
            names = doubles(data, *before.sides(change.path))
            twice += [f"{show(change.path)}: {name}" for name in names]
    return [
        Check("python compiles", not broken, "; ".join(broken) or f"{len(changes)} files"),
        Check("no definition twice", not twice, "; ".join(twice) or f"{len(changes)} files"),
    ]


def _added(series: Sequence[Patch]) -> dict[bytes, bytes] | None:
    """The lines that the patches add, by path; None where one of them only git can read."""
    lines: dict[bytes, list[bytes]] = {}
    for patch in series:
        if patch.files is None:
            return None
        for file in patch.files:
            added = (line for hunk in file.hunks for atom in hunk.atoms for line in atom.new)
            lines.setdefault(file.path, []).extend(added)
    return {path: b"".join(found) for path, found in lines.items()} if series else None


class _Before:
    """The texts that a result was merged from, read when a name stands twice."""

    def __init__(
        self,
        store: Store,
        ids: Mapping[bytes, str],
        patched: Callable[[bytes], bytes | None] | None,
    ) -> None:
        self._store = store
        self._ids = ids
        self._patched = patched

    def upstream(self, path: bytes) -> bytes | None:
        return self._store.objects.blob(self._ids[path]) if path in self._ids else None

    def sides(self, path: bytes) -> list[bytes]:
        found = [self.upstream(path), self._patched(path) if self._patched else None]
        return [data for data in found if data is not None]


def compiles(data: bytes, name: str) -> str | None:
    """Why `data` does not compile as Python, or None where it does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(data, name, "exec", dont_inherit=True)
        except SyntaxError as error:
            return f"line {error.lineno}: {error.msg}"
        except (ValueError, RecursionError, MemoryError) as error:
            return str(error)
    return None
