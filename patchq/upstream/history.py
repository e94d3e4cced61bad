"""Upstream as a git repository: any URL, or a path whose objects are read in place."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from patchq.errors import PatchqError
from patchq.gitstore.git import run
from patchq.gitstore.store import Store
from patchq.progress import SILENT, Progress
from patchq.upstream.releases import AsOf, Release

TAGS = "+refs/tags/*:refs/tags/*"
HEADS = "+refs/heads/*:refs/remotes/origin/*"


def local_git_dir(value: str) -> Path | None:
    """The git directory at `value`, or None where it is a URL.

    Raises PatchqError for a path that is no repository.
    """
    path = Path(value).expanduser()
    if re.match(r"^[^/:]+:", value) and not path.exists():  # scheme://... or host:path
        return None
    for candidate in (path / ".git", path):
        if candidate.is_file():
            done = run(["-C", str(path), "rev-parse", "--git-common-dir"], ok=(0, 128))
            found = (path / done.out.decode().strip()).resolve()
            if done.code == 0 and (found / "objects").is_dir():
                return found
        if (candidate / "objects").is_dir() and (candidate / "HEAD").is_file():
            return candidate.resolve()
    raise PatchqError(f"{value} is not a git repository", "give a URL or the path of a repository")


class History:
    """The releases of a git repository, by tag, branch or commit."""

    def __init__(
        self,
        url: str,
        cache: Path,
        *,
        offline: bool = False,
        progress: Progress = SILENT,
    ) -> None:
        if url.startswith(("-", "ext::")):
            raise PatchqError(f"{url!r} is not a repository address", "give a URL or a path")
        self._url = url
        self._cache = cache
        self._offline = offline
        self._progress = progress
        self._local = local_git_dir(url)
        self._complete = True
        self._fetched = False

    @cached_property
    def store(self) -> Store:
        where = str(self._local) if self._local else self._url
        key = hashlib.sha256(where.encode()).hexdigest()[:12]
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(self._url).name)[:40] or "git"
        path = self._cache / "stores" / f"git-{stem}-{key}.git"
        return Store(path, alternates=[self._local / "objects"] if self._local else ())

    @property
    def names_are_fixed(self) -> bool:
        """Branches move, and tags can."""
        return False

    def close(self) -> None:
        if "store" in self.__dict__:
            self.store.close()

    def as_of(self) -> AsOf:
        stamp = self._stamp
        if self._local:
            when = datetime.now(UTC)
        else:
            when = datetime.fromtimestamp(stamp.stat().st_mtime if stamp.is_file() else 0, UTC)
        return AsOf(f"git, {_without_password(self._url)}", when, self._complete, history=True)

    def latest(self) -> str:
        self._fetch()
        from packaging.version import InvalidVersion, Version

        best: tuple[Version, str] | None = None
        for tag in self._tags():
            try:
                version = Version(tag)
            except InvalidVersion:
                continue
            if not version.is_prerelease and (best is None or version > best[0]):
                best = (version, tag)
        if best is None:
            raise PatchqError(
                f"{_without_password(self._url)} has no tag that is a version",
                "name the release with --onto REF",
            )
        return best[1]

    def release(self, name: str, *, commit: str | None = None) -> Release:
        if commit is not None and (found := self._resolve(commit)):
            return self._made(name, found)
        self._fetch()
        for candidate in (name, f"v{name}"):
            if found := self._resolve(candidate):
                return self._made(candidate, found)
        tags = self._tags()
        near = ", ".join(tags[-8:]) or "none"
        raise PatchqError(
            f"{_without_password(self._url)} has no tag, branch or commit {name!r}",
            f"its newest tags are: {near}",
        )

    def commit_of(self, name: str, tree: str) -> str | None:
        """The commit of the release `name` if its tree is `tree`; contents are not fetched.

        Asked upstream only where the store does not know it yet. Raises PatchqError where upstream
        cannot be reached and was never.
        """
        for known in (True, False):
            if not known:
                self._fetch()
            for candidate in (name, f"v{name}"):
                found = self._resolve(candidate)
                if found is not None and self.store.objects.tree_of(found) == tree:
                    return found
        return None

    def tags(self) -> list[tuple[str, str]]:
        """Each tag and its commit, by version."""
        form = "%(refname:strip=2) %(objectname) %(*objectname)"
        done = run(
            ["for-each-ref", "--sort=version:refname", f"--format={form}", "refs/tags"],
            git_dir=self._git_dir,
        )
        lines = (line.split(" ") for line in done.out.decode("utf-8", "replace").splitlines())
        return [(name, peeled or oid) for name, oid, peeled in lines]

    def _made(self, name: str, commit: str) -> Release:
        self._bring_blobs(commit)
        return Release(name, commit, self.store.objects.tree_of(commit))

    @property
    def _git_dir(self) -> Path:
        """Where the names are: a path's own repository, for a URL the store."""
        return self._local or self.store.path

    def _resolve(self, name: str) -> str | None:
        if name.startswith("-"):
            return None
        for candidate in (f"refs/tags/{name}", name, f"refs/remotes/origin/{name}"):
            done = run(
                ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{candidate}^{{commit}}"],
                git_dir=self._git_dir,
                ok=(0, 1, 128),
            )
            if done.code == 0:
                return done.out.decode().strip()
        return None

    def _tags(self) -> list[str]:
        done = run(
            ["for-each-ref", "--sort=version:refname", "--format=%(refname:strip=2)", "refs/tags"],
            git_dir=self._git_dir,
        )
        return done.out.decode("utf-8", "surrogateescape").split("\n")[:-1]

    @property
    def _stamp(self) -> Path:
        return self.store.path / "patchq-fetched"

    def _fetch(self) -> None:
        """Tags and branches, commits and trees only; once a run."""
        if self._local or self._fetched:
            return
        self._fetched = True
        if self._offline:
            self._complete = False
            return
        self._progress.step(f"fetching {_without_password(self._url)}")
        for key, value in (
            ("remote.origin.url", self._url),
            ("remote.origin.promisor", "true"),
            ("remote.origin.partialclonefilter", "blob:none"),
        ):
            self.store.git(["config", key, value])
        done = self.store.git(
            ["fetch", "--quiet", "--no-tags", "--filter=blob:none", "origin", TAGS, HEADS],
            network=True,
            ok=tuple(range(256)),
        )
        if done.code == 0:
            self._stamp.touch()
        elif self._stamp.is_file():
            self._complete = False
        else:
            raise PatchqError(
                f"{_without_password(self._url)} cannot be fetched: {done.why}",
                "check the address and the network; a path to a clone works as well",
            )

    def _bring_blobs(self, commit: str) -> None:
        """All contents of a release at once: one by one on demand would take a request each."""
        if self._local:
            return
        done = self.store.git(
            ["rev-list", "--objects", "--no-walk", "--missing=print", commit], network=True
        )
        missing = [line[1:] for line in done.out.decode().splitlines() if line.startswith("?")]
        if not missing:
            return
        if self._offline:
            raise PatchqError(
                f"{len(missing)} files of {commit[:12]} are not in the store, and --offline"
                " forbids to fetch them",
                "run it once without --offline",
            )
        self._progress.step(f"fetching {len(missing)} files")
        self.store.git(
            ["fetch", "--quiet", "--no-tags", "--no-filter", "--stdin", "origin"],
            input="".join(f"{oid}\n" for oid in missing).encode(),
            network=True,
        )


def _without_password(url: str) -> str:
    return re.sub(r"^([a-z][a-z0-9+.-]*://)[^/@]*@", r"\1", url)
