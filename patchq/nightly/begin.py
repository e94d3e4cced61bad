"""Where a night begins: the commit of the project that it is about, and what is known of others."""

from __future__ import annotations

import tarfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from patchq.config import Project
from patchq.errors import Incomplete, PatchqError
from patchq.gitstore import snapshot
from patchq.gitstore.files import write
from patchq.gitstore.secret import Secret
from patchq.gitstore.tags import setting
from patchq.nightly import stages
from patchq.nightly.settings import FILE, Settings
from patchq.smoke import evidence, gate_rules, released
from patchq.smoke.catalog import PROBES

_LARGEST = 256 << 20


@dataclass(frozen=True)
class Start:
    """The project's commit. `note`: a sentence about what was not reached, or empty."""

    commit: str
    note: str = ""


def start(root: Path, settings: Settings, wanted: str | None, secret: Secret | None) -> Start:
    """The commit to begin with: `wanted`, the branch `into` of the remote as it is now, or HEAD.

    A remote that is not reached is no error: what was fetched last is taken, and said. Raises
    PatchqError where there is no such commit.
    """
    if wanted is not None:
        return Start(_commit(root, wanted))
    if setting(root, "remote.origin.url") is None:
        return Start(_commit(root, "HEAD"))
    from patchq.gitstore.push import fetch_branch

    try:
        found = fetch_branch(root, "origin", settings.into, secret=secret)
    except Incomplete as problem:
        note = f"the project's remote was not reached: {problem.message}"
        return Start(known(root, settings), note)
    if found is None:
        raise PatchqError(
            f"the project's remote has no branch {settings.into!r}",
            f"push it there, or name another as `into` in {FILE}",
        )
    return Start(found)


def known(root: Path, settings: Settings) -> str:
    """What is known here of the branch that a night begins with, without asking anybody."""
    if setting(root, "remote.origin.url") is not None:
        for name in (f"refs/remotes/origin/{settings.into}", f"refs/heads/{settings.into}"):
            if found := snapshot.commit_of(root, name):
                return found
    return _commit(root, "HEAD")


def _commit(root: Path, name: str) -> str:
    found = snapshot.commit_of(root, name)
    if found is None:
        raise PatchqError(
            f"the project has no commit {name!r:.100}", "commit the queue, or name one with --from"
        )
    return found


def sound(root: Path, project: Project, settings: Settings, queue: str) -> None:
    """Raises PatchqError for what would make every stage of a night useless."""
    from patchq.cluster import config, profile
    from patchq.config import load_queue

    cluster = config.load(root, settings.cluster)
    profile.load(root, settings.profile)
    if cluster.target != settings.target:
        raise PatchqError(
            f"the cluster {cluster.name} takes {cluster.target}, and {settings.target} is built",
            "give the cluster's target, or another cluster",
        )
    for source in load_queue(project, queue).sources:
        away = source.kind == "git" and not Path(source.value).is_absolute()
        if away and (root / source.value).exists():
            raise PatchqError(
                f"upstream/{queue}.toml names its source by the relative path {source.value}",
                "a night works in a clone elsewhere: write the whole path, or an address",
            )


def bench(root: Path, clone: Path, folder: Path | None, lock: str) -> stages.Bench | None:
    """What the gate asks of bench and compare; None where it asks for neither.

    The last release's bench is looked for in the project's evidence, then in the release's bundle,
    from which it is copied into `folder` (None: named, and not copied). Raises PatchqError where
    the rules are malformed.
    """
    rules = gate_rules.load(clone, [probe.name for probe in PROBES])
    if rules.bench is None and rules.compare is None:
        return None
    found = stages.Bench()
    if rules.bench is not None:
        found = stages.Bench(rules.bench.contexts, max(rules.bench.rounds, 1))
    if rules.compare is None:
        return found
    return stages.Bench(found.contexts, found.rounds, _saved(root, clone, folder, lock))


def _saved(root: Path, clone: Path, folder: Path | None, lock: str) -> Path | None:
    gone = released.withdrawn(clone)
    for number in reversed(released.numbers(clone)):
        was = released.read(clone, number).lock.digest
        if number in gone or was == lock:
            continue
        kept = evidence.folder(root, was) / "bench.json"
        if kept.is_file():
            return kept
        bundle = root / "build" / "releases" / str(number) / "evidence.tar.gz"
        with suppress(OSError, tarfile.TarError, KeyError, EOFError):
            return _taken(bundle, folder and folder / f"release-{number}.bench.json")
        return None
    return None


def _taken(bundle: Path, out: Path | None) -> Path | None:
    with tarfile.open(bundle) as archive:
        member = archive.getmember("bench.json")
        opened = archive.extractfile(member)
        if opened is None or member.size > _LARGEST:
            return None
        if out is not None:
            write(out, opened.read())
    return out or bundle


def secret(root: Path, settings: Settings) -> Secret | None:
    """The token of the environment, for the git host of the project's GitHub; None without one."""
    from patchq.forge.client import token, usual_api
    from patchq.forge.proposals import git_host
    from patchq.release.where import where

    found = token()
    if found is None:
        return None
    try:
        api = where(root, settings.repository).api
    except PatchqError:
        api = usual_api()
    return Secret(git_host(api), found[0])
