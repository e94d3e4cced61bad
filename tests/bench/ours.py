"""patchq itself on a case: the carry alone, and the whole ``patchq sync``."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

from tests.bench.measure import Cost, cost, fresh, git
from tests.bench.peers import Env, Outcome, Way
from tests.bench.series import Case

REPO = Path(__file__).resolve().parents[2]

# What this very patchq prepared: a kept work folder may hold an older one's.
_PREPARED: set[Path] = set()


def patchq() -> list[str]:
    """The command line's first words: the console script, or the module without one."""
    script = Path(sys.executable).parent / "patchq"
    if script.is_file():
        return [str(script)]
    return [sys.executable, "-c", "from patchq.cli.main import main; raise SystemExit(main())"]


def ours_env(env: Env, cache: Path) -> Env:
    """`env` with patchq's cache at `cache` and this checkout's patchq."""
    # The byte code of the tool stays, as it does for an installed one.
    kept = {key: value for key, value in env.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PATCHQ_CACHE": str(cache), "PYTHONPATH": str(REPO)}


def ours_carry(case: Case, place: Path, env: Env, whole: bool = False) -> Outcome:
    """Only the carry (tests/bench/fold.py in a process of its own, start-up included)."""
    cache = fresh(place / "cache")
    args = [sys.executable, "-m", "tests.bench.fold", str(case.repo), f"v{case.old}"]
    args += [f"v{case.new}", str(series_folder(case, env))]
    did = cost(args, cwd=fresh(place / "carry"), env=ours_env(env, cache), whole=whole)
    said = json.loads(did.out)
    return Outcome(did, said["tree"] == case.tree, said.get("note", ""), said.get("parts"))


def series_folder(case: Case, env: Env) -> Path:
    """The case's patches as a series of patchq, made once. Not measured."""
    folder = case.patches.parent / "ours"
    if folder not in _PREPARED:
        _PREPARED.add(folder)
        shutil.rmtree(folder, ignore_errors=True)
        args = ["--prepare", str(case.patches), str(folder)]
        cost(
            [sys.executable, "-m", "tests.bench.fold", *args],
            cwd=case.patches.parent,
            env=ours_env(env, case.patches.parent / "no-cache"),
        )
    return folder


def project(case: Case, place: Path, env: Env) -> Path:
    """A git repository with the case's series imported and committed. Not measured."""
    root = place / f"project-{case.name}"
    if root not in _PREPARED:
        fresh(root)
        inside = ours_env(env, fresh(place / "cache-import"))
        git("init", "-q", "-b", "main", ".", cwd=root, env=env)
        base = f"v{case.old}"
        cost(
            [*patchq(), "init", "bench", "--git", str(case.repo), "--base", base],
            cwd=root,
            env=inside,
        )
        cost([*patchq(), "import", "--quilt", str(case.patches)], cwd=root, env=inside)
        git("add", "-A", cwd=root, env=env)
        git("commit", "-q", "-m", "Import", cwd=root, env=env)
        _PREPARED.add(root)
    copy = place / "project"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(root, copy, symlinks=True)
    return copy


def sync(case: Case, root: Path, cache: Path, env: Env, whole: bool = False) -> Cost:
    """One ``patchq sync`` of the project at `root` onto the case's new release."""
    args = [*patchq(), "sync", "--onto", f"v{case.new}", "--json"]
    return cost(args, cwd=root, env=ours_env(env, cache), whole=whole, ok=False)


def ours_sync(case: Case, place: Path, env: Env, whole: bool = False) -> Outcome:
    """``patchq sync`` from nothing cached: observe, judge, carry, prove, record."""
    root, cache = project(case, place, env), fresh(place / "cache")
    did = sync(case, root, cache, env, whole)
    return _judged(case, root, cache, env, did)


def ours_again(case: Case, place: Path, env: Env, whole: bool = False) -> Outcome:
    """The same with the cache of an earlier sync between these releases."""
    root, cache = project(case, place, env), fresh(place / "cache")
    sync(case, root, cache, env)
    root = project(case, place, env)
    did = sync(case, root, cache, env, whole)
    return _judged(case, root, cache, env, did)


def _judged(case: Case, root: Path, cache: Path, env: Env, did: Cost) -> Outcome:
    try:
        said = json.loads(did.out)
    except ValueError:
        raise RuntimeError(f"patchq sync: {did.err.decode(errors='replace')[-3000:]}") from None
    if did.code not in (0, 4, 5, 6) or "patches" not in said:
        raise RuntimeError(f"patchq sync ended with {did.code}: {json.dumps(said)[:3000]}")
    words: dict[str, int] = {}
    for patch in said["patches"]:
        word = f"{patch['verdict']}/{patch['carry']}"
        words[word] = words.get(word, 0) + 1
    note = ", ".join(f"{count} {word}" for word, count in sorted(words.items()))
    if did.code:
        return Outcome(did, False, f"exit {did.code}: {note}")
    shown = cost([*patchq(), "tree"], cwd=root, env=ours_env(env, cache))
    tree = shown.out.decode().split()[0]
    return Outcome(did, tree == case.tree, note)


OURS: dict[str, tuple[str, Way]] = {
    "carry": ("patchq: the carry alone", ours_carry),
    "sync": ("patchq sync (whole)", ours_sync),
    "again": ("patchq sync (whole), warm cache", ours_again),
}


def missing() -> str:
    """Why patchq cannot be measured here; empty where it can."""
    if not (REPO / "patchq" / "cli" / "main.py").is_file() or not os.access(patchq()[0], os.X_OK):
        return "patchq is not installed here"
    return ""
