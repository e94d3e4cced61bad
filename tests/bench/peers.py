"""The peers on one case: prepare a fresh place (not measured), run one command, take the tree.

git, quilt and StGit are what the machine has on its PATH.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.bench.measure import Cost, cost, fresh, git
from tests.bench.releases import entries, listing
from tests.bench.series import Case

Env = Mapping[str, str]


@dataclass(frozen=True)
class Outcome:
    """One measured run: its cost, whether the final tree is git's, and what else was seen."""

    cost: Cost
    same: bool
    note: str = ""
    parts: Mapping[str, float] | None = None


Way = Callable[[Case, Path, Env, bool], Outcome]


def rebase(case: Case, place: Path, env: Env, whole: bool = False) -> Outcome:
    """``git rebase --onto NEW OLD series`` in a work tree of a fresh clone."""
    tree = _clone(case, place, env)
    did = cost(
        ["git", "rebase", "-q", "--onto", f"v{case.new}", f"v{case.old}", "series"],
        cwd=tree,
        env=env,
        whole=whole,
    )
    return Outcome(did, _tree(tree, env) == case.tree)


def stgit(case: Case, place: Path, env: Env, whole: bool = False) -> Outcome:
    """``stg rebase NEW`` with the series as a stack (made before, by ``stg uncommit``)."""
    tree = _clone(case, place, env)
    cost(["stg", "init"], cwd=tree, env=env)
    cost(["stg", "uncommit", "-n", str(case.count)], cwd=tree, env=env)
    did = cost(["stg", "rebase", f"v{case.new}"], cwd=tree, env=env, whole=whole, ok=False)
    note = "" if not did.code else f"stopped with {did.code}"
    return Outcome(did, _tree(tree, env) == case.tree, note or _differing(case, tree, env))


def quilt(case: Case, place: Path, env: Env, whole: bool = False) -> Outcome:
    """``quilt push -a`` on the unpacked new release, with quilt's own fuzz."""
    tree = fresh(place / "quilt")
    unpack(case, f"v{case.new}", tree, env)
    shutil.copytree(case.patches, tree / "patches")
    args = ["quilt", "--quiltrc", "-", "push", "-a"]
    did = cost(args, cwd=tree, env=env, whole=whole, ok=False)
    fuzzed = did.out.count(b" with fuzz ")
    done = len(re.findall(rb"^Applying patch ", did.out, re.MULTILINE))
    notes = [f"{fuzzed} hunks with fuzz"] if fuzzed else []
    if did.code:
        notes.append(f"stopped at patch {done} of {case.count}")
    wrong = _differing_files(case, tree)
    if wrong and not did.code:
        notes.append(f"{len(wrong)} files differ from git's")
    return Outcome(did, not wrong and not did.code, "; ".join(notes))


def _clone(case: Case, place: Path, env: Env) -> Path:
    tree = fresh(place / "clone")
    git("clone", "-q", "-b", "series", str(case.repo), str(tree), cwd=place, env=env)
    git("config", "submodule.recurse", "false", cwd=tree, env=env)
    git("config", "gc.auto", "0", cwd=tree, env=env)
    return tree


def unpack(case: Case, ref: str, tree: Path, env: Env) -> None:
    where = {"GIT_DIR": str(case.repo), "GIT_WORK_TREE": str(tree)}
    scratch = dict(env) | where | {"GIT_INDEX_FILE": str(tree.parent / "unpack.index")}
    git("read-tree", ref, cwd=tree, env=scratch)
    git("checkout-index", "-a", "-f", cwd=tree, env=scratch)
    (tree.parent / "unpack.index").unlink()


def _tree(repo: Path, env: Env) -> str:
    return git("rev-parse", "HEAD^{tree}", cwd=repo, env=env).decode().strip()


def _differing(case: Case, repo: Path, env: Env) -> str:
    wanted, found = entries(case.carried.read_bytes()), listing(repo, "HEAD", env)
    wrong = [path for path in wanted.keys() | found.keys() if wanted.get(path) != found.get(path)]
    return f"{len(wrong)} files differ from git's" if wrong else ""


def _differing_files(case: Case, tree: Path) -> set[bytes]:
    """Paths whose mode or bytes in the folder `tree` are not those of the case's final tree."""
    wanted = entries(case.carried.read_bytes())
    found = {}
    root = os.fsencode(tree)
    for folder, below, files in os.walk(root):
        if folder == root:
            below[:] = [name for name in below if name not in (b".pc", b"patches")]
        for name in files:
            path = os.path.join(folder, name)
            state = os.lstat(path)
            if stat.S_ISLNK(state.st_mode):
                mode, content = b"120000", os.readlink(path)
            else:
                mode = b"100755" if state.st_mode & 0o100 else b"100644"
                with open(path, "rb") as file:
                    content = file.read()
            digest = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False)
            found[os.path.relpath(path, root)] = (mode, digest.hexdigest().encode())
    return {path for path in wanted.keys() | found.keys() if wanted.get(path) != found.get(path)}


PEERS: dict[str, tuple[str, Way]] = {
    "git": ("git rebase", rebase),
    "quilt": ("quilt push -a", quilt),
    "stgit": ("stg rebase", stgit),
}
