"""quilt as an oracle: another applier, with other rules, gives the same files."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from patchq.carry.report import Check
from patchq.errors import PatchqError
from patchq.gitstore.checkout import check_out
from patchq.gitstore.objects import blob_id
from patchq.gitstore.store import Store
from patchq.paths import show
from patchq.queue.patch import Patch


def by_quilt(store: Store, tree: str, series: Sequence[Patch]) -> Check:
    """`quilt push -a --fuzz=0` on the unpacked base gives the same files as `git apply`.

    quilt cannot take binary content and some mode changes: the series is compared up to there.
    """
    if shutil.which("quilt") is None:
        raise PatchqError("quilt is not installed", "install it, or check without --quilt")
    taken: list[Patch] = []
    stop = ""
    for patch in series:
        stop = _untakeable(patch)
        if stop:
            break
        taken.append(patch)
    with tempfile.TemporaryDirectory(prefix="patchq-quilt-") as name:
        root = Path(name)
        source, patches = root / "source", root / "patches"
        source.mkdir()
        patches.mkdir()
        check_out(store, tree, source)
        for patch in taken:
            (patches / patch.file).write_bytes(patch.text)
        (patches / "series").write_text("".join(f"{p.file}\n" for p in taken), encoding="utf-8")
        env = {**os.environ, "QUILT_PATCHES": str(patches), "QUILT_PC": str(root / "pc")}
        if taken:
            done = subprocess.run(
                ["quilt", "--quiltrc", "-", "push", "-a", "--fuzz=0"],
                cwd=source,
                env=env,
                capture_output=True,
                check=False,
            )
            if done.returncode != 0:
                lines = (done.stdout + done.stderr).decode("utf-8", "replace").splitlines()
                return Check("quilt", False, show(" ".join(lines[-3:])))
        got = _files_below(source)
    wanted = _tree_after(store, tree, taken)
    files = {path: (entry.mode, entry.oid) for path, entry in store.objects.walk(wanted)}
    odd = sorted(path for path in got.keys() | files.keys() if got.get(path) != files.get(path))
    if odd:
        return Check("quilt", False, f"{len(odd)} files differ, {show(odd[0])} first")
    detail = f"{len(taken)} patches give {wanted}"
    return Check("quilt", True, f"{detail}; not compared from there: {stop}" if stop else detail)


def _untakeable(patch: Patch) -> str:
    for file in patch.files or ():
        if file.binary:
            return f"{patch.file} holds binary content ({show(file.path)})"
        if not file.hunks and b" " in file.path and not file.deleted:
            return f"{patch.file}: a bare mode change or empty file with a space in its name"
    return ""


def _tree_after(store: Store, base: str, series: Sequence[Patch]) -> str:
    with store.index(base) as index:
        for patch in series:
            index.apply_bytes(patch.text)
        return index.write()


def _files_below(folder: Path) -> dict[bytes, tuple[str, str]]:
    """Mode and blob id of every file below `folder`, as git would store it unfiltered."""
    found: dict[bytes, tuple[str, str]] = {}
    for path in folder.rglob("*"):
        name = os.fsencode(path.relative_to(folder).as_posix())
        if path.is_symlink():
            found[name] = ("120000", blob_id(os.fsencode(path.readlink())))
        elif path.is_file():
            mode = "100755" if path.stat().st_mode & 0o100 else "100644"
            found[name] = (mode, blob_id(path.read_bytes()))
    return found
