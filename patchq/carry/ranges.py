"""The stretch of upstream's history between two releases, where a queue has a git source."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from patchq.carry.workspace import Queue
from patchq.errors import PatchqError
from patchq.gitstore import log
from patchq.gitstore.log import Commit
from patchq.gitstore.store import Store
from patchq.judge.commits import Told
from patchq.progress import SILENT, Progress
from patchq.upstream.releases import Release
from patchq.upstream.sources import open_history


@dataclass
class Range:
    """The commits that `new` has and `old` has not, in a store that has them; both are ids.

    `release` is the newer one's name, `tags` are the releases after the old one (name, commit), the
    oldest first. `offline` forbids to fetch what a partial clone lacks; `failed` says why the
    history could not be read after all.
    """

    store: Store
    old: str
    new: str
    release: str
    tags: tuple[tuple[str, str], ...] = ()
    offline: bool = False
    progress: Progress = SILENT
    failed: str = ""

    @cached_property
    def commits(self) -> list[Commit]:
        """Parents before children."""
        self.progress.step("reading upstream's history")
        return log.commits(self.store, self.old, self.new)

    def versions(self, commits: Collection[str]) -> dict[str, bytes]:
        """What each of the commits changed, as a canonical diff against its first parent."""
        parents = {each.id: each.parents[0] for each in self.commits if each.parents}
        wanted = [oid for oid in sorted(commits) if oid in parents]
        olds = self.store.objects.trees_of(parents[oid] for oid in wanted)
        news = self.store.objects.trees_of(wanted)
        texts = self.store.diff_texts(list(zip(olds, news, strict=True)))
        return dict.fromkeys(commits, b"") | dict(zip(wanted, texts, strict=True))

    def release_of(self, commit: str) -> str:
        """The first release that has a commit, or another that says it is the same change."""
        if not self.tags or self.tags[0][1] == self.new:
            return self.release
        told = self._told.get(commit)
        for name, inside, picks in self._releases:
            if commit in inside:
                return name
            for pick in picks:
                numbers = () if pick.is_revert else (pick.own, *pick.others)
                same = told is not None and told.own is not None and told.own in numbers
                if same or any(commit.startswith(oid) for oid in pick.picked):
                    return name
        return self.release

    @cached_property
    def _told(self) -> dict[str, Told]:
        return {each.id: Told(each) for each in self.commits}

    @cached_property
    def _releases(self) -> list[tuple[str, frozenset[str], list[Told]]]:
        """Of each release its commits, and those that stand on its own branch only."""
        found = []
        for name, commit in self.tags:
            every = self.store.git(["rev-list", commit, f"^{self.old}"]).out.decode().split()
            beside = [each for each in every if each not in self._told]
            picks = [Told(each) for each in log.words(self.store, beside)]
            found.append((name, frozenset(every), picks))
        return found


class Unreached(str):
    """Why upstream's history could not be fetched."""


@contextmanager
def opened(
    queue: Queue,
    base: Release,
    target: Release,
    store: Store,
    *,
    offline: bool,
    progress: Progress = SILENT,
) -> Iterator[Range | str | None]:
    """The range from `base` to `target`; None without a git source, else why it cannot be had.

    `store` holds the releases. A queue on archives has its history in another source, whose tags
    must have the very trees of the archives.
    """
    source = next((each for each in queue.config.sources if each.kind == "git"), None)
    if source is None or base.commit == target.commit:
        yield None
        return
    first = queue.config.sources[0] is source
    upstream = open_history(source, queue.project.root, offline=offline, progress=progress)
    try:
        ends: list[str | None] = [base.commit, target.commit]
        try:
            if not first:
                ends = [upstream.commit_of(each.name, each.tree) for each in (base, target)]
        except PatchqError as error:
            yield Unreached(error.message)
            return
        old, new = ends
        if old is None or new is None:
            name = base.name if old is None else target.name
            yield f"{source.value} has no tag {name} with that release's tree"
            return
        tags = _between(upstream.tags(), base.name, target.name)
        where = store if first else upstream.store
        yield Range(where, old, new, target.name, tags, offline, progress)
    finally:
        upstream.close()


def _between(tags: list[tuple[str, str]], old: str, new: str) -> tuple[tuple[str, str], ...]:
    """The final releases after `old`, up to `new`, called as `new` is; none without versions."""
    from packaging.version import InvalidVersion, Version

    def version(name: str) -> Version | None:
        try:
            return Version(name)
        except InvalidVersion:
            return None

    first, last = version(old), version(new)
    if first is None or last is None:
        return ()
    found = [
        (each, name, commit)
        for name, commit in tags
        if (each := version(name)) is not None
        and first < each <= last
        and (not each.is_prerelease or each == last)
    ]
    plain = not new.startswith("v")
    return tuple(
        (name.removeprefix("v") if plain else name, commit) for _, name, commit in sorted(found)
    )
