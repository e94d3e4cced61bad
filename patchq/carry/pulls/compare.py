"""How a pull request's head moved: its change at the pinned head beside its change today."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from patchq.carry import rangediff
from patchq.carry.pulls import take
from patchq.carry.pulls.book import Entry
from patchq.carry.pulls.model import Moved
from patchq.carry.pulls.spans import Source, source
from patchq.carry.pulls.take import EXCLUDE, Piece, Span
from patchq.carry.workspace import Queue, upstream_of
from patchq.errors import PatchqError
from patchq.progress import SILENT, Progress
from patchq.upstream.releases import Upstream


class Opened:
    """The queue's upstream and the repositories of its pull requests, opened when one moved."""

    def __init__(self, queue: Queue, stack: ExitStack, offline: bool, progress: Progress) -> None:
        self.queue, self.progress = queue, progress
        self._stack, self._offline = stack, offline
        self._sources: dict[str, Source] = {}
        self._upstream: Upstream | None = None

    @property
    def upstream(self) -> Upstream:
        if self._upstream is None:
            manager = upstream_of(self.queue, offline=self._offline, progress=self.progress)
            self._upstream = self._stack.enter_context(manager)
        return self._upstream

    def source(self, repo: str) -> Source:
        if repo not in self._sources:
            store = self.upstream.store
            manager = source(self.queue, store, repo, offline=self._offline, progress=self.progress)
            self._sources[repo] = self._stack.enter_context(manager)
        return self._sources[repo]


@contextmanager
def opened(queue: Queue, *, offline: bool, progress: Progress = SILENT) -> Iterator[Opened]:
    with ExitStack() as stack:
        yield Opened(queue, stack, offline, progress)


def spans(opened: Opened, entry: Entry) -> tuple[Source, Span, Span]:
    """Where the pull request's commits are, at the pinned head and at today's.

    Raises PatchqError where one of them is not reached.
    """
    assert entry.pull is not None
    repo, _, number = entry.key.rpartition("#")
    pulls = opened.source(repo)
    pulls.head(int(number), entry.pull)
    head = entry.pull.head_sha
    if not pulls.has(head):
        raise PatchqError(
            f"the head {head[:12]} of {entry.key} is not upstream's any more",
            "it moved again meanwhile: run it once more",
        )
    if not pulls.has(entry.pin):
        raise PatchqError(
            f"the pinned head {entry.pin[:12]} of {entry.key} cannot be had any more",
            "it was exchanged upstream, and is kept neither there nor here",
        )
    return pulls, pulls.span(entry.pin, entry.pull), pulls.span(head, entry.pull)


def excluded(queue: Queue, entry: Entry) -> tuple[str, ...]:
    """The patterns that the patches of the pull request record."""
    names = {use.patch for use in entry.uses if use.role == "carries"}
    found = [patch.header.all(EXCLUDE) for patch in queue.series.all if patch.name in names]
    return found[0] if found else ()


def moved(opened: Opened, entry: Entry, news: Sequence[str], *, named: bool = False) -> Moved:
    """What changed in the pull request's own diff; where it cannot be told, why.

    One that no patch carries asks nothing: how it moved is compared where it was `named` only.
    """
    carried = any(use.role == "carries" for use in entry.uses)
    if entry.stand not in ("moved", "held") or not (carried or named):
        return Moved(entry, tuple(news))
    done = "held" if entry.stand == "held" else "asked" if carried else ""
    try:
        pulls, was, wants = spans(opened, entry)
        exclude = excluded(opened.queue, entry)
        old, new = (take.whole(pulls.store, span, exclude) for span in (was, wants))
    except PatchqError as error:
        return Moved(entry, tuple(news), "", error.message, done)
    told = rangediff.between(old.diff, new.diff)
    why = "" if told else "its own change is the same; it starts from another commit"
    return Moved(entry, tuple(news), told, why, done)


def pieces(opened: Opened, entry: Entry, count: int) -> tuple[list[Piece], list[Piece]]:
    """What `count` patches of the pull request were made of, and are to be made of now.

    Raises PatchqError where it was taken commit by commit and has another number of them now.
    """
    pulls, *both = spans(opened, entry)
    exclude = excluded(opened.queue, entry)
    if count == 1:
        was, wants = ([take.whole(pulls.store, span, exclude)] for span in both)
        return was, wants
    was, wants = (take.each_commit(pulls.store, span, exclude) for span in both)
    if not len(was) == len(wants) == count:
        raise PatchqError(
            f"{count} patches carry {entry.key}, which had {len(was)} commits and has"
            f" {len(wants)} now",
            "take its patches out and add it anew, as one patch",
        )
    return was, wants
