"""Heads of pull requests by git alone: GitHub keeps each as `refs/pull/N/head`, after its end too.

They go into the store of the upstream that they belong to, beside its tags and branches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from patchq.config import QueueConfig
from patchq.errors import Incomplete
from patchq.forge.client import GITHUB_API
from patchq.forge.model import require_repo
from patchq.gitstore import remote
from patchq.gitstore.store import Store
from patchq.progress import SILENT, Progress
from patchq.upstream.history import History, local_git_dir

GITHUB = "https://github.com"
_BRANCH = re.compile(r"(?![/-])(?!.*(?:\.\.|//|@\{))[^\x00-\x20\x7f~^:?*\[\\]+")


@dataclass(frozen=True)
class Brought:
    """The heads by number, and sentences about those that did not come."""

    heads: Mapping[int, str]
    missing: tuple[str, ...] = ()
    absent: frozenset[int] = field(default=frozenset())
    """Numbers that the repository does not have."""


def git_url(config: QueueConfig, repo: str, root: Path | None = None) -> str:
    """Where git finds OWNER/REPO: `git` of the queue's file or its source, beside it, at GitHub.

    A queue whose file says no `github` has one upstream: every OWNER/REPO means it. A relative
    path counts from `root`.
    """
    url = _git_url(config, require_repo(repo))
    return str(root / url) if root and (root / url).exists() else url


def _git_url(config: QueueConfig, repo: str) -> str:
    sources = [source.value for source in config.sources if source.kind == "git"]
    if sources and not config.git and repo.lower() == (config.github or repo).lower():
        return sources[0]
    if config.git and config.github:
        if repo.lower() == config.github.lower():
            return config.git
        stem = config.git.removesuffix("/").removesuffix(".git")
        if stem.lower().endswith(f"/{config.github.lower()}"):
            tail = ".git" if config.git.endswith(".git") else ""
            return stem[: -len(config.github)] + repo + tail
    if config.github_api and config.github_api.rstrip("/") != GITHUB_API:
        parts = urlsplit(config.github_api)
        return f"{parts.scheme}://{parts.netloc}/{repo}.git"
    return f"{GITHUB}/{repo}.git"


class Heads:
    """The heads of one repository's pull requests. Of a path they are read in place."""

    def __init__(
        self,
        repo: str,
        url: str,
        cache: Path,
        *,
        offline: bool = False,
        progress: Progress = SILENT,
    ) -> None:
        """`repo` is OWNER/REPO, `url` where git finds it (see `git_url`)."""
        self.repo = require_repo(repo)
        self._history = History(url, cache, offline=offline, progress=progress)
        self._local = local_git_dir(url)
        self._url = url
        self._offline = offline
        self._progress = progress

    @property
    def store(self) -> Store:
        return self._history.store

    def close(self) -> None:
        self._history.close()

    def __enter__(self) -> Heads:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _refs_at(self) -> Path:
        return self._local or self.store.path

    @cached_property
    def _where(self) -> str:
        return re.sub(r"^([a-z][a-z0-9+.-]*://)[^/@]*@", r"\1", self._url)

    def fetch(self, numbers: Iterable[int], *, branches: Iterable[str] = ()) -> Brought:
        """Today's heads of the numbers in the store, with their history, without contents.

        `branches` come along; names that git does not take are left out. What cannot be fetched
        is said, and what was there before stays.
        """
        wanted = sorted(set(numbers))
        if self._local or self._offline or not (wanted or branches):
            return self._there(wanted, absent=self._local is not None)
        refs = {_pull(number): _pull(number) for number in wanted}
        refs |= {
            f"refs/heads/{name}": _branch(name) for name in branches if _BRANCH.fullmatch(name)
        }
        self._progress.step(f"fetching {len(refs)} heads from {self._where}")
        before = remote.heads(self.store.path, refs.values())
        remote.configure(self.store, self._url)
        done = remote.fetch(self.store, refs)
        if done.code == 0:
            return self._there(wanted, absent=True)
        why = f"{self._where} cannot be fetched: {done.why or f'git ends with {done.code}'}"
        heads = {n: before[_pull(n)] for n in wanted if _pull(n) in before}
        return Brought(heads, (f"{why} ({len(wanted)} heads not looked at)",))

    def _there(self, wanted: list[int], *, absent: bool) -> Brought:
        refs = remote.heads(self._refs_at, map(_pull, wanted))
        heads = {number: refs[_pull(number)] for number in wanted if _pull(number) in refs}
        gone = [number for number in wanted if number not in heads]
        if absent:
            says = tuple(f"{self.repo}#{number} is not at {self._where}" for number in gone)
            return Brought(heads, says, frozenset(gone))
        return Brought(
            heads, tuple(f"the head of {self.repo}#{number} was never fetched" for number in gone)
        )

    def known(self, number: int) -> str | None:
        """The head as it was last fetched."""
        return remote.heads(self._refs_at, [_pull(number)]).get(_pull(number))

    def branch(self, name: str) -> str | None:
        """The tip of a branch of the repository as it was last fetched."""
        ref = f"refs/heads/{name}" if self._local else _branch(name)
        return remote.heads(self._refs_at, [ref]).get(ref)

    def merge_base(self, head: str, branch: str) -> str | None:
        """Where a head leaves a branch of the repository; None where it has nothing of it."""
        tip = self.branch(branch)
        return remote.merge_base(self.store, head, tip) if tip else None

    def files(self, base: str, head: str) -> tuple[bytes, ...]:
        """The paths in which two commits differ; no content is needed for it."""
        return tuple(change.path for change in self.store.changes(base, head))

    def bring(self, base: str, head: str) -> None:
        """The contents of the files in which two commits differ, in one request.

        Raises Incomplete where they cannot be fetched.
        """
        if self._local or self._offline:
            return
        ids = {
            oid
            for change in self.store.changes(base, head)
            for mode, oid in ((change.old_mode, change.old_oid), (change.new_mode, change.new_oid))
            if oid.strip("0") and mode != "160000"
        }
        if not ids:
            return
        remote.configure(self.store, self._url)
        self._progress.step(f"fetching {len(ids)} files from {self._where}")
        done = remote.fetch_objects(self.store, sorted(ids))
        if done.code:
            raise Incomplete(
                f"the contents of {head[:12]} cannot be fetched: {done.why}",
                "check the network, and run it again",
            )


def _pull(number: int) -> str:
    return f"refs/pull/{number}/head"


def _branch(name: str) -> str:
    return f"refs/remotes/origin/{name}"
