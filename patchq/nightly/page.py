"""Where a queue stands, for `patchq report`: patches, pull requests, releases, nights, drift.

Only what lies here is read; what others have to be asked for (how far upstream is ahead, how often
a release was fetched) is given. What is not known is a sentence, never a guess. The same inputs,
the moment among them, give the same page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from patchq.carry.pulls import book
from patchq.carry.pulls.book import Role
from patchq.carry.report import DONE, INCOMPLETE
from patchq.carry.workspace import Queue
from patchq.errors import PatchqError
from patchq.nightly import kept, page_pulls
from patchq.nightly import page_known as known
from patchq.nightly.model import Night
from patchq.nightly.page_known import Verdict
from patchq.nightly.page_pulls import PullRow
from patchq.queue.patch import Patch
from patchq.release import history
from patchq.release.manifest import Figure
from patchq.upstream.drift import Drift


@dataclass(frozen=True)
class Downloads:
    """How often each release was fetched, by number; `missing` says why nobody knows.

    `pages`: the addresses of the published ones. `reached`: False where the forge did not answer.
    """

    counts: Mapping[int, int]
    pages: Mapping[int, str]
    as_of: str | None = None
    missing: str = ""
    reached: bool = True


@dataclass(frozen=True)
class PatchRow:
    """A patch of the queue. `age` in days since it was made, None without a date.

    `waits`: when it may go (its Patchq-Drop-When). `held`: why it is not applied. `verdict` is None
    where no sync's report is here.
    """

    number: int
    name: str
    subject: str
    origin: str
    status: str
    topic: str
    age: int | None
    pulls: tuple[tuple[str, Role], ...]
    waits: tuple[str, ...]
    held: str | None
    verdict: Verdict | None


@dataclass(frozen=True)
class ReleaseRow:
    """A release. `downloads` of all its files together, None where nobody knows."""

    number: int
    date: str
    base: str
    patches: int
    passed: bool
    withdrawn: str | None
    figures: tuple[Figure, ...]
    downloads: int | None
    page: str | None


@dataclass(frozen=True)
class Page:
    """Everything that the page shows. Numbers of releases and nights: the newest first.

    `site`: the repository's address at its forge. `moved_since`: the night with whose start the
    pull requests are compared; `unmoved`: why they are not. `notes`: what could not be read.
    `reached`: False where somebody was asked and did not answer.
    """

    queue: str
    source: str
    now: datetime
    base: str
    tree: str
    patches: tuple[PatchRow, ...]
    pulls: tuple[PullRow, ...]
    moved_since: str | None
    unmoved: str
    releases: tuple[ReleaseRow, ...]
    nights: tuple[Night, ...]
    stale_hours: float
    drift: Drift
    downloads: Downloads
    site: str | None = None
    notes: tuple[str, ...] = ()
    reached: bool = True

    @property
    def last(self) -> Night | None:
        return self.nights[0] if self.nights else None

    @property
    def hours(self) -> float | None:
        """How long ago the last night ended (or began, where it has not), in hours."""
        when = known.moment(self.last.ended or self.last.began) if self.last else None
        return None if when is None else max((self.now - when).total_seconds() / 3600, 0.0)

    @property
    def late(self) -> bool:
        """Whether the last night is older than it may be."""
        return self.hours is not None and self.hours > self.stale_hours

    @property
    def exit_code(self) -> int:
        """0; 6 where somebody was asked and did not answer."""
        return DONE if self.reached else INCOMPLETE

    @property
    def base_days(self) -> int | None:
        """Days since the base was released."""
        when = known.moment(self.drift.date) if self.drift.date else None
        return None if when is None else max((self.now - when).days, 0)


def gather(
    queue: Queue,
    *,
    now: datetime,
    nights: Sequence[Night],
    folder: Path,
    drift: Drift,
    downloads: Downloads,
    stale_hours: float = 36,
    site: str | None = None,
    notes: Sequence[str] = (),
    reached: bool = True,
) -> Page:
    """The page of a queue at `now`.

    `nights` in any order, those of other queues among them; their folders lie in `folder`, where
    they are of this machine. Raises PatchqError for a queue that cannot be read.
    """
    mine = ordered(nights, queue.config.name)
    found = list(notes)
    verdicts = known.verdicts(folder, mine, found)
    seen = page_pulls.seen(queue, mine[0] if mine else None, folder)
    source = queue.config.sources[0]
    return Page(
        queue=queue.config.name,
        source=f"{source.kind} {source.value}",
        now=now.astimezone(UTC),
        base=queue.state.release,
        tree=queue.state.runner_tree if queue.is_proved else "",
        patches=tuple(_patches(queue, verdicts, now)),
        pulls=seen.rows,
        moved_since=seen.since,
        unmoved=seen.why,
        releases=_releases(queue, downloads, found),
        nights=mine,
        stale_hours=stale_hours,
        drift=drift,
        downloads=downloads,
        site=site,
        notes=tuple(found),
        reached=reached and drift.reached and downloads.reached,
    )


def ordered(nights: Iterable[Night], queue: str) -> tuple[Night, ...]:
    """The nights of a queue, the newest first; of two of one name the one that is given first."""
    by_name: dict[str, Night] = {}
    for each in nights:
        if each.queue == queue:
            by_name.setdefault(each.name, each)
    names = sorted(by_name, key=kept.order, reverse=True)
    return tuple(by_name[name] for name in names)


def _patches(queue: Queue, verdicts: Mapping[str, Verdict], now: datetime) -> Iterable[PatchRow]:
    held = queue.series.held
    for patch in queue.series.all:
        header = patch.header
        uses = book.uses_of(patch)
        yield PatchRow(
            number=patch.number,
            name=patch.name,
            subject=header.subject,
            origin=header.get("Origin"),
            status=header.get("Upstream-Status"),
            topic=header.get("Patchq-Topic"),
            age=_age(patch, now),
            pulls=tuple((key, use.role) for key, use in uses.items()),
            waits=header.all(book.DROP_WHEN),
            held=held.get(patch.name),
            verdict=verdicts.get(patch.name),
        )


def _age(patch: Patch, now: datetime) -> int | None:
    if not patch.header.get("Date"):
        return None
    try:
        made = patch.date.astimezone(UTC).date()
    except (PatchqError, OverflowError):
        return None
    return max((now.astimezone(UTC).date() - made).days, 0)


def _releases(queue: Queue, downloads: Downloads, notes: list[str]) -> tuple[ReleaseRow, ...]:
    try:
        found = history.listed(queue.project.root)
    except PatchqError as problem:
        notes.append(problem.message)
        return ()
    return tuple(
        ReleaseRow(
            number=each.manifest.number,
            date=each.manifest.date,
            base=each.manifest.base.release,
            patches=len(each.manifest.patches),
            passed=each.manifest.gate.passed,
            withdrawn=each.withdrawn,
            figures=each.manifest.bench,
            downloads=downloads.counts.get(each.manifest.number),
            page=downloads.pages.get(each.manifest.number),
        )
        for each in found
        if each.manifest.queue == queue.config.name
    )
