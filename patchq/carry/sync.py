"""`patchq sync`: observe; where there is something to do, take the step."""

from __future__ import annotations

from dataclasses import replace

from patchq.carry.report import SyncReport, nothing
from patchq.carry.workspace import Queue, base_of, upstream_of
from patchq.progress import SILENT, Progress
from patchq.upstream.releases import Upstream


def sync(
    queue: Queue,
    *,
    onto: str = "latest",
    dry_run: bool = False,
    offline: bool = False,
    refresh: bool = False,
    recovered: str | None = None,
    progress: Progress = SILENT,
) -> SyncReport:
    """Carry the queue's series onto the release `onto` and record the result.

    The caller holds the lock. Nothing is written unless every patch has an answer and the proof
    holds. Raises PatchqError for an unknown release or a series that is no series.
    """
    with upstream_of(queue, offline=offline, refresh=refresh, progress=progress) as upstream:
        name = upstream.latest() if onto == "latest" else onto
        if _stands_on(queue, upstream, name):
            return replace(nothing(queue, upstream.as_of()), recovered=recovered)
        target = upstream.release(name)
        base = base_of(queue, upstream)
        # A step loads much that a sync with nothing to do can spare.
        from patchq.carry.step import step

        report = step(queue, base, target, upstream.as_of(), upstream.store, dry_run, progress)
    return replace(report, recovered=recovered)


def idle(
    queue: Queue, *, onto: str = "latest", offline: bool = False, refresh: bool = False
) -> SyncReport | None:
    """The report where there is nothing to do, found without a lock; else None."""
    with upstream_of(queue, offline=offline, refresh=refresh) as upstream:
        name = upstream.latest() if onto == "latest" else onto
        if not _stands_on(queue, upstream, name):
            return None
        return nothing(queue, upstream.as_of())


def _stands_on(queue: Queue, upstream: Upstream, name: str) -> bool:
    """Whether the series stands, proved, on that very release."""
    if not queue.is_proved:
        return False
    if upstream.names_are_fixed:
        return name.removeprefix("v") == queue.state.release
    target = upstream.release(name)
    return (target.name, target.commit) == (queue.state.release, queue.state.commit)
