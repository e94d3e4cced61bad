"""How far a queue's base is behind upstream: releases since, their dates, commits between.

The package index knows releases and dates; a git source among the queue's knows commits as well.
What cannot be learned is a sentence in `missing`, and no reason to stop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.config import QueueConfig, Source, cache_dir
from patchq.errors import PatchqError
from patchq.gitstore.git import run
from patchq.progress import SILENT, Progress
from patchq.upstream.history import local_git_dir

if TYPE_CHECKING:
    from packaging.version import Version

    from patchq.upstream.history import History

MAIN = ("refs/remotes/origin/HEAD", "refs/remotes/origin/main", "refs/remotes/origin/master")


@dataclass(frozen=True)
class Newer:
    """A release that came after the base; `date` as YYYY-MM-DD, "" where nobody says it."""

    name: str
    date: str = ""


@dataclass(frozen=True)
class Drift:
    """`base` as it is recorded, and the day that it came ("" unknown).

    `newer` are the releases since, the oldest first; None where that is not known. `commits`: how
    many lie between the base and what is named. `as_of`: when upstream was asked (UTC). `reached`:
    False where it should have been asked and did not answer.
    """

    base: str
    date: str = ""
    newer: tuple[Newer, ...] | None = None
    commits: tuple[tuple[str, int], ...] = ()
    as_of: datetime | None = None
    missing: tuple[str, ...] = ()
    reached: bool = True


def drift(
    config: QueueConfig,
    root: Path,
    base: str,
    commit: str,
    *,
    offline: bool = False,
    progress: Progress = SILENT,
) -> Drift:
    """How far `base` is behind, by all sources of the queue in the repository at `root`.

    `commit` is the base's own, where its first source is git. `offline` asks nobody: then it is as
    old as what is kept.
    """
    found = Drift(base)
    first, *rest = config.sources
    git = first if first.kind == "git" else next((e for e in rest if e.kind == "git"), None)
    if first.kind == "index":
        found = _by_index(found, first, offline, progress)
    if git is None:
        told = "no history: commits are not counted (`patchq upstream add-git URL` brings it)"
        return _missing(found, told)
    try:
        return _by_git(found, git, root, commit if git is first else None, offline, progress)
    except PatchqError as problem:
        return _missing(found, problem.message, reached=offline)


def _missing(found: Drift, told: str, *, reached: bool = True) -> Drift:
    return replace(found, missing=(*found.missing, told), reached=found.reached and reached)


def _by_index(found: Drift, source: Source, offline: bool, progress: Progress) -> Drift:
    from patchq.upstream import index, pipconf

    progress.step(f"asking the package index for {source.value}")
    try:
        answer = index.look_up(
            source.value, pipconf.read_settings(), cache_dir() / "index", offline=offline
        )
    except PatchqError as problem:
        return _missing(found, problem.message, reached=offline)
    days: dict[str, str] = {}
    out: set[str] = set()
    for each in answer.dists:
        day = (each.uploaded or "")[:10]
        days[each.version] = min(filter(None, (days.get(each.version), day)), default="")
        if each.prerelease or each.yanked is not None:
            out.add(each.version)
    named = [(name, day) for name, day in days.items() if name not in out]
    found = _placed(replace(found, as_of=answer.as_of), named, days.get(found.base, ""))
    if answer.complete:
        return found
    return _missing(
        found, f"the package index was not reached; this is as of {answer.as_of:%Y-%m-%d}"
    )


def _placed(found: Drift, named: Sequence[tuple[str, str]], day: str) -> Drift:
    """With the releases (name, date) that are newer than the base."""
    base = _version(found.base)
    if base is None:
        return _missing(found, f"{found.base} is no version: releases since are not counted")
    pairs = [(version, Newer(*each)) for each in named if (version := _version(each[0]))]
    newer = sorted(
        ((version, each) for version, each in pairs if version > base), key=lambda pair: pair[0]
    )
    return replace(found, date=day, newer=tuple(each for _, each in newer))


def _version(name: str) -> Version | None:
    from packaging.version import InvalidVersion, Version

    try:
        return Version(name)
    except InvalidVersion:
        return None


def _by_git(
    found: Drift,
    source: Source,
    root: Path,
    commit: str | None,
    offline: bool,
    progress: Progress,
) -> Drift:
    from patchq.upstream.sources import open_history

    history = open_history(source, root, offline=offline, progress=progress)
    try:
        latest = history.latest()  # which fetches, where that is allowed
        tags = {name: oid for name, oid in history.tags() if _version(name) is not None}
        base = commit or next((tags[n] for n in (found.base, f"v{found.base}") if n in tags), None)
        if base is None:
            return _missing(found, f"the history has no tag of {found.base}: nothing is counted")
        if found.newer is None:
            found = _since(found, history, tags, base)
        git_dir = _git_dir(history, source, root)
        heads = {latest: tags[latest], **_main(git_dir)}
        counts = ((name, _between(history, base, oid)) for name, oid in heads.items())
        found = replace(found, commits=tuple((n, c) for n, c in counts if c is not None))
        as_of = history.as_of()
    finally:
        history.close()
    found = replace(found, as_of=found.as_of or as_of.when)
    if as_of.complete:
        return found
    told = f"the history was not fetched; it is as of {as_of.when:%Y-%m-%d}"
    return _missing(found, told, reached=offline)


def _since(found: Drift, history: History, tags: dict[str, str], base: str) -> Drift:
    days = _days(history, {*tags.values(), base})
    final = {n: oid for n, oid in tags.items() if (v := _version(n)) and not v.is_prerelease}
    named = [(name, days.get(oid, "")) for name, oid in final.items()]
    return _placed(replace(found, date=days.get(base, "")), named, days.get(base, ""))


def _days(history: History, oids: set[str]) -> dict[str, str]:
    """The day of each commit, by its committer, in UTC."""
    text = "".join(f"{oid}\n" for oid in sorted(oids)).encode()
    done = history.store.git(["log", "--no-walk", "--stdin", "--format=%H %ct"], input=text)
    pairs = (line.split(" ") for line in done.out.decode().splitlines())
    return {oid: f"{datetime.fromtimestamp(int(at), UTC):%Y-%m-%d}" for oid, at in pairs}


def _git_dir(history: History, source: Source, root: Path) -> Path:
    value = str(root / source.value) if (root / source.value).exists() else source.value
    return local_git_dir(value) or history.store.path


def _main(git_dir: Path) -> dict[str, str]:
    """The tip of upstream's main branch, by the branch's name; nothing where none is known."""
    names = ("HEAD",) if not _has(git_dir, MAIN) else MAIN
    for name in names:
        done = run(
            ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"],
            git_dir=git_dir,
            ok=(0, 1, 128),
        )
        if done.code == 0:
            return {"main": done.out.decode().strip()}
    return {}


def _has(git_dir: Path, refs: Sequence[str]) -> bool:
    done = run(["for-each-ref", "--count=1", "--format=x", *refs], git_dir=git_dir)
    return bool(done.out)


def _between(history: History, old: str, new: str) -> int | None:
    done = history.store.git(["rev-list", "--count", f"{old}..{new}"], ok=(0, 128))
    return int(done.out) if done.code == 0 else None
