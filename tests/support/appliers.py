"""Judges that are not ours: a series applied to a bare release by `git apply` and by quilt."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

from tests.support.history import LINK, SUBMODULE, Entry, History, Tree, clean_env, git

RAW = b"* -text -eol -ident -filter -working-tree-encoding !diff !merge\n"
"""Attributes that outrank a tree's own, so that `git apply --index` sees bytes."""


def series_files(series: Path) -> list[Path]:
    """The patches that the `series` file names, in order; comments and options left out."""
    found = []
    for line in (series / "series").read_bytes().decode().split("\n"):
        name = line.split("#", 1)[0].split()
        if name:
            found.append(series / name[0])
    return found


def write_tree(tree: Tree, root: Path) -> None:
    """A plain checkout, as an unpacked archive would give it."""
    base = os.fsencode(root)
    for path, entry in tree.items():
        full = os.path.join(base, path)
        if entry.mode == SUBMODULE:
            os.makedirs(full)
            continue
        os.makedirs(os.path.dirname(full), exist_ok=True)
        if entry.mode == LINK:
            os.symlink(entry.data, full)
            continue
        with open(full, "wb") as file:
            file.write(entry.data)
        os.chmod(full, entry.mode & 0o777)


def read_tree(root: Path, leave_out: frozenset[bytes] = frozenset()) -> Tree:
    """Every file and link below `root`, but for the top-level names in `leave_out`."""
    tree: Tree = {}
    base = os.fsencode(root)
    for folder, names, files in os.walk(base):
        if folder == base:
            names[:] = [name for name in names if name not in leave_out]
        links = [name for name in names if os.path.islink(os.path.join(folder, name))]
        for name in [*files, *links]:
            full = os.path.join(folder, name)
            path = os.path.relpath(full, base)
            mode = os.lstat(full).st_mode
            if stat.S_ISLNK(mode):
                tree[path] = Entry(os.readlink(full), LINK)
            else:
                with open(full, "rb") as file:
                    tree[path] = Entry(file.read(), 0o100755 if mode & 0o100 else 0o100644)
    return tree


def apply_with_git(upstream: History, release: str, series: Path, work: Path) -> tuple[str, Tree]:
    """Tree hash and files after `git apply --index` of every patch, one at a time."""
    work.mkdir(parents=True)
    git(work, "init", "-q")
    (work / ".git/info").mkdir(exist_ok=True)
    (work / ".git/info/attributes").write_bytes(RAW)
    (work / ".git/objects/info/alternates").write_text(f"{upstream.path}/objects\n")
    commit = git(upstream.path, "rev-parse", f"{release}^{{commit}}").decode().strip()
    git(work, "read-tree", commit)
    git(work, "checkout-index", "-a", "-f", "-u")
    for patch in series_files(series):
        git(work, "apply", "--index", "--whitespace=nowarn", str(patch))
    hash_ = git(work, "write-tree").decode().strip()
    return hash_, read_tree(work, frozenset({b".git"}))


def apply_with_quilt(upstream: History, release: str, series: Path, work: Path) -> Tree:
    """Files after `quilt push -a --fuzz=0` on a plain checkout."""
    work.mkdir(parents=True)
    write_tree(upstream.tree(release), work)
    if series_files(series):
        shutil.copytree(series, work / "patches")
        done = subprocess.run(
            ["quilt", "--quiltrc", "-", "push", "-a", "--fuzz=0"],
            cwd=work,
            env=clean_env(work),
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout.decode(errors="replace")
        assert b"offset" not in done.stdout, done.stdout.decode(errors="replace")
    return read_tree(work, frozenset({b".pc", b"patches"}))


def without_submodules(tree: Tree) -> Tree:
    return {path: entry for path, entry in tree.items() if entry.mode != SUBMODULE}
