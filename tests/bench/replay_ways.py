"""Carry one replay by patchq and by its peers, and count what each says of every patch.

Where a peer stops, the person beside it knows the truth: a patch that upstream has is skipped, any
other one is resolved with its own text. So each stop is counted once, and the rest goes on.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.measure import fresh, git
from tests.bench.ours import ours_env, patchq
from tests.bench.replay_build import LANDED, REVERTED, Item, Replay

Env = Mapping[str, str]


@dataclass
class Found:
    """What a way said: names of patches that it dropped, shrank and stopped at; seconds."""

    dropped: set[str] = field(default_factory=set)
    shrunk: set[str] = field(default_factory=set)
    stopped: set[str] = field(default_factory=set)
    fuzzed: set[str] = field(default_factory=set)
    seconds: float = 0.0
    note: str = ""


@dataclass(frozen=True)
class Score:
    """One row of the table. `stale`: landed, kept without a word; `lost`: needed, dropped."""

    landed: int
    recognised: int
    as_carried: int
    changed: int
    lost: tuple[str, ...]
    reverted_lost: int
    stops: int
    stops_on_landed: int
    stale: tuple[str, ...]


def score(items: list[Item], found: Found) -> Score:
    """Count what was found against the truth."""
    landed = {item.name for item in items if item.kind in LANDED}
    by_kind = {kind: {i.name for i in items if i.kind == kind} for kind in {i.kind for i in items}}
    known = landed & found.dropped
    wrong = found.dropped - landed
    stale = landed - found.dropped - found.stopped - found.shrunk
    return Score(
        len(landed),
        len(known),
        len(known & by_kind.get(LANDED[0], set())),
        len(known & by_kind.get(LANDED[1], set())),
        tuple(sorted(wrong - by_kind.get(REVERTED, set()))),
        len(wrong & by_kind.get(REVERTED, set())),
        len(found.stopped),
        len(found.stopped & landed),
        tuple(sorted(stale)),
    )


def with_numbers(replay: Replay, place: Path, env: Env) -> Found:
    """`patchq sync`, the patches with their pull requests in their headers."""
    return _patchq(replay, place, env, "numbered")


def without_numbers(replay: Replay, place: Path, env: Env) -> Found:
    """`patchq sync` from trees and history alone."""
    return _patchq(replay, place, env, "series")


def _patchq(replay: Replay, place: Path, env: Env, branch: str) -> Found:
    root = fresh(place / f"queue-{branch}")
    inside = dict(ours_env(env, fresh(place / f"cache-{branch}")))
    git("init", "-q", "-b", "main", ".", cwd=root, env=env)

    def run(*args: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([*patchq(), *args], cwd=root, env=inside, capture_output=True)

    for args in (
        ("init", "replay", "--git", str(replay.repo), "--base", "v1"),
        ("import", "--git", str(replay.repo), f"v1..{branch}"),
    ):
        done = run(*args)
        if done.returncode:
            raise RuntimeError(f"patchq {args[0]}: {done.stderr.decode(errors='replace')[-3000:]}")
    begin = time.perf_counter()
    done = run("sync", "--onto", "v2", "--dry-run", "--json")
    seconds = time.perf_counter() - begin
    if done.returncode not in (0, 4, 5, 6):
        raise RuntimeError(f"patchq sync: {(done.stdout + done.stderr).decode()[-3000:]}")
    patches = json.loads(done.stdout)["patches"]
    begin = time.perf_counter()
    run("sync", "--onto", "v2", "--dry-run", "--json")
    again = time.perf_counter() - begin
    found = Found(seconds=seconds, note=f"again in {again:.1f} s")
    for item, patch in zip(replay.items, patches, strict=True):
        sets = {"drop": found.dropped, "shrink": found.shrunk, "ask": found.stopped}
        if patch["action"] in sets:
            sets[patch["action"]].add(item.name)
    return found


def rebase_drop(replay: Replay, place: Path, env: Env) -> Found:
    """`git rebase --empty=drop NEW`: what has the same patch id is left out before."""
    return _rebase(replay, place, env, ["--empty=drop", "v2"])


def rebase_onto(replay: Replay, place: Path, env: Env) -> Found:
    """`git rebase --onto NEW OLD`."""
    return _rebase(replay, place, env, ["--empty=drop", "--onto", "v2", "v1"])


def _rebase(replay: Replay, place: Path, env: Env, args: list[str]) -> Found:
    tree = _clone(replay, place, env)
    found = Found()
    by_subject = {_subject(item): item for item in replay.items}
    begin = time.perf_counter()
    done = _try(tree, env, "git", "rebase", "-q", *args)
    while (tree / ".git/rebase-merge").is_dir():
        subject = git("log", "-1", "--format=%s", "REBASE_HEAD", cwd=tree, env=env).decode().strip()
        item = by_subject.get(subject)
        if item is None:
            # The old release's own branch is rebased along: its commits are nobody's patches.
            done = _try(tree, env, "git", "rebase", "--skip")
            continue
        found.stopped.add(item.name)
        if not item.landed:
            _with_its_own_text(tree, env)
            done = _try(tree, env, "git", "rebase", "--continue")
        if item.landed or (done.returncode and _same_stop(tree, env, subject)):
            done = _try(tree, env, "git", "rebase", "--skip")
    found.seconds = time.perf_counter() - begin
    kept = set(git("log", "--format=%s", "v2..HEAD", cwd=tree, env=env).decode().splitlines())
    gone = {item.name for item in replay.items if _subject(item) not in kept}
    found.dropped = gone - found.stopped
    return found


def _same_stop(tree: Path, env: Env, subject: str) -> bool:
    if not (tree / ".git/rebase-merge").is_dir():
        return False
    now = git("log", "-1", "--format=%s", "REBASE_HEAD", cwd=tree, env=env).decode().strip()
    return now == subject


def stgit(replay: Replay, place: Path, env: Env) -> Found:
    """`stg rebase NEW` and `stg push -a --merged`; what it calls merged is left empty."""
    tree = _clone(replay, place, env)
    found = Found()
    begin = time.perf_counter()
    _try(tree, env, "stg", "init")
    _try(tree, env, "stg", "uncommit", "-n", str(len(replay.items)))
    names = _lines(_try(tree, env, "stg", "series", "--noprefix"))
    by_name = dict(zip(names, replay.items, strict=True))
    _try(tree, env, "stg", "rebase", "--nopush", "v2")
    for _ in range(len(names) + 1):
        if _try(tree, env, "stg", "push", "-a", "--merged").returncode == 0:
            break
        if not git("ls-files", "-u", cwd=tree, env=env):
            break
        top = _lines(_try(tree, env, "stg", "top"))[0]
        found.stopped.add(by_name[top].name)
        if by_name[top].landed:
            _try(tree, env, "stg", "undo", "--hard")
            _try(tree, env, "stg", "delete", top)
        else:
            _with_its_own_text(tree, env)
            _try(tree, env, "stg", "refresh")
    found.seconds = time.perf_counter() - begin
    before = git("rev-parse", "v2^{tree}", cwd=tree, env=env).decode().strip()
    full = set()
    listed = git("log", "--reverse", "--format=%T %s", "v2..HEAD", cwd=tree, env=env)
    for line in listed.decode().splitlines():
        after, _, subject = line.partition(" ")
        full |= {subject} if after != before else set()
        before = after
    found.dropped = {i.name for i in replay.items if _subject(i) not in full} - found.stopped
    return found


def _lines(done: subprocess.CompletedProcess[bytes]) -> list[str]:
    return done.stdout.decode(errors="replace").split()


def quilt(replay: Replay, place: Path, env: Env) -> Found:
    """`quilt push` one by one, with quilt's own fuzz; its hint that a patch is there counts."""
    tree = fresh(place / "quilt")
    unpack = dict(env) | {"GIT_DIR": str(replay.repo), "GIT_WORK_TREE": str(tree)}
    unpack["GIT_INDEX_FILE"] = str(place / "quilt.index")
    git("read-tree", "v2", cwd=tree, env=unpack)
    git("checkout-index", "-a", "-f", cwd=tree, env=unpack)
    folder = fresh(tree / "patches")
    before = "v1"
    for item in replay.items:
        options = ["--no-renames", "--full-index", "--binary"]
        diff = git("diff-tree", "-p", *options, before, item.commit, cwd=replay.repo, env=env)
        (folder / f"{item.name}.patch").write_bytes(diff)
        before = item.commit
    (folder / "series").write_text("".join(f"{item.name}.patch\n" for item in replay.items))
    found = Found()
    begin = time.perf_counter()
    for item in replay.items:
        done = _try(tree, env, "quilt", "--quiltrc", "-", "push")
        said = (done.stdout + done.stderr).decode(errors="replace")
        if done.returncode == 0:
            if " with fuzz " in said:
                found.fuzzed.add(item.name)
            continue
        known = "can be reverse-applied" in said or "already" in said
        (found.dropped if known else found.stopped).add(item.name)
        if item.landed or known:
            _try(tree, env, "quilt", "--quiltrc", "-", "delete", f"{item.name}.patch")
            names = (folder / "series").read_text().splitlines()
            rest = [name for name in names if name != f"{item.name}.patch"]
            (folder / "series").write_text("".join(f"{name}\n" for name in rest))
        else:
            _try(tree, env, "quilt", "--quiltrc", "-", "push", "-f")
            _try(tree, env, "quilt", "--quiltrc", "-", "refresh")
    found.seconds = time.perf_counter() - begin
    found.note = f"{len(found.fuzzed)} with fuzz"
    return found


def _clone(replay: Replay, place: Path, env: Env) -> Path:
    tree = place / "clone"
    shutil.rmtree(tree, ignore_errors=True)
    git("clone", "-q", "-s", "-b", "series", str(replay.repo), str(tree), cwd=place, env=env)
    (tree / ".git/objects/info/alternates").write_text(
        f"{replay.repo}/objects\n{replay.mirror}/objects\n"
    )
    git("config", "submodule.recurse", "false", cwd=tree, env=env)
    git("config", "gc.auto", "0", cwd=tree, env=env)
    return tree


def _subject(item: Item) -> str:
    return f"patch {item.name}"


def _with_its_own_text(tree: Path, env: Env) -> None:
    """The conflicting paths as the patch has them."""
    listed = git("ls-files", "-u", "-z", cwd=tree, env=env).split(b"\0")
    stages: dict[bytes, set[bytes]] = {}
    for line in filter(None, listed):
        head, path = line.split(b"\t", 1)
        stages.setdefault(path, set()).add(head.split(b" ")[2])
    for path, has in stages.items():
        name = path.decode("utf-8", "surrogateescape")
        if b"3" in has:
            _try(tree, env, "git", "checkout", "-q", "--theirs", "--", name)
            _try(tree, env, "git", "add", "--", name)
        else:
            _try(tree, env, "git", "rm", "-q", "-f", "--", name)


def _try(tree: Path, env: Env, *args: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(list(args), cwd=tree, env=dict(env), capture_output=True)


Way = Callable[[Replay, Path, Env], Found]
WAYS: dict[str, tuple[str, Way]] = {
    "numbers": ("patchq sync, pull requests in the headers", with_numbers),
    "plain": ("patchq sync, trees and history alone", without_numbers),
    "rebase": ("git rebase --empty=drop NEW", rebase_drop),
    "onto": ("git rebase --onto NEW OLD", rebase_onto),
    "stgit": ("stg rebase --merged NEW", stgit),
    "quilt": ("quilt push", quilt),
}
