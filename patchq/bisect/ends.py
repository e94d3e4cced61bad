"""The two ends of a bisection: what a word means, and the project's files at that commit.

An end is a release (its number, or `last release`), a runner (the start of its lock's digest), or
a revision of the project's repository (`.` is what is committed now).
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from patchq.build import lock as locks
from patchq.build.lock import RunnerLock
from patchq.carry.workspace import Queue, read_queue
from patchq.config import Project, find_project
from patchq.errors import PatchqError
from patchq.gitstore import snapshot
from patchq.paths import show
from patchq.upstream import components
from patchq.upstream.components import Pins

FOLDERS = ("series", "upstream", "ci/profiles")
"""What a runner is described by."""
LOCK = f"upstream/{locks.FILE}"
REACH = 2000
"""Commits of the lock file that are looked through for a digest."""
LAST = ("last release", "last-release")
_TAG = re.compile(r"release-([1-9][0-9]{0,8})")
_DIGEST = re.compile(rf"[0-9a-f]{{{locks.SHORTEST},64}}")


@dataclass(frozen=True)
class End:
    """The project at one commit. `label` is what people read, `files` are those below FOLDERS.

    `queue` is read from them; `lock` is the committed lock, None where there is none that is whole.
    """

    label: str
    commit: str
    lock: RunnerLock | None
    files: Mapping[str, bytes] = field(repr=False)
    queue: Queue = field(repr=False)
    pins: Pins = field(repr=False)

    @property
    def digest(self) -> str | None:
        """The digest of the runner lock that was committed with it."""
        return self.lock.digest if self.lock is not None else None

    def below(self, folder: str) -> dict[str, bytes]:
        """The files below `folder`, by path from the project's root."""
        return {path: data for path, data in self.files.items() if path.startswith(f"{folder}/")}


def resolve(root: Path, word: str) -> tuple[str, str]:
    """The commit that `word` means, and what to call it.

    Raises PatchqError where it means none, or several.
    """
    word = word.strip()
    if word in (".", "HEAD"):
        return _or_none(snapshot.commit_of(root, "HEAD"), word), "the present state"
    if word in LAST:
        return _last(root)
    found: dict[str, str] = {}
    if word.isdecimal() and (commit := snapshot.commit_of(root, f"refs/tags/release-{word}")):
        return commit, f"release {word}"
    for ref in (f"refs/tags/{word}", f"refs/heads/{word}", f"refs/remotes/{word}"):
        if commit := snapshot.commit_of(root, ref):
            return commit, _named(word)
    if _DIGEST.fullmatch(word):
        found |= _locked(root, word)
    if not word.startswith("-") and (commit := snapshot.commit_of(root, word)):
        found.setdefault(commit, f"revision {show(word)}")
    if len(found) > 1:
        raise PatchqError(
            f"{show(word)!r} may be {' or '.join(sorted(found.values()))}", "give more letters"
        )
    for commit, label in found.items():
        return commit, label
    return _or_none(None, word), ""


def read(root: Path, word: str, queue: str | None = None) -> End:
    """The end that `word` means.

    Raises PatchqError where it means no commit, or the queue cannot be read there.
    """
    commit, label = resolve(root, word)
    files = snapshot.files_at(root, commit, FOLDERS)
    project = find_project(root)
    with tempfile.TemporaryDirectory(prefix="patchq-") as place:
        for path, data in files.items():
            target = os.path.join(place, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            Path(target).write_bytes(data)
        try:
            found = read_queue(Project(Path(place), project.git_dir), queue)
            pins = components.pinned(Path(place) / "upstream")
        except PatchqError as error:
            raise PatchqError(
                f"{label} ({commit[:12]}) cannot be read: {error.message}",
                "name a commit at which the queue was whole",
            ) from error
    here = Queue(project, found.config, found.series, found.states)
    return End(label, commit, _lock(files.get(LOCK)), files, here, pins)


def _lock(data: bytes | None) -> RunnerLock | None:
    if data is None:
        return None
    try:
        return locks.parse(data, LOCK)
    except PatchqError:
        return None


def _last(root: Path) -> tuple[str, str]:
    numbers = [int(m[1]) for tag in snapshot.tags(root, "release-") if (m := _TAG.fullmatch(tag))]
    if not numbers:
        raise PatchqError("there is no release here yet", "name a revision or a runner's digest")
    number = max(numbers)
    commit = snapshot.commit_of(root, f"refs/tags/release-{number}")
    return _or_none(commit, f"release-{number}"), f"release {number}"


def _named(word: str) -> str:
    found = _TAG.fullmatch(word)
    return f"release {found[1]}" if found else show(word)


def _locked(root: Path, digest: str) -> dict[str, str]:
    """The commits whose lock's digest starts with `digest`, one for each such lock."""
    found: dict[str, str] = {}
    for commit, data in snapshot.versions(root, LOCK, most=REACH):
        lock = _lock(data)
        if lock is not None and lock.digest.startswith(digest):
            found.setdefault(lock.digest, commit)
    return {commit: f"runner {whole[:12]}" for whole, commit in found.items()}


def _or_none(commit: str | None, word: str) -> str:
    if commit is None:
        raise PatchqError(
            f"{show(word)!r} is no release, no runner's digest and no revision of this repository",
            "give a release's number, the start of a digest (`git log upstream/runner.lock`), a"
            " branch, a tag or a commit",
        )
    return commit
