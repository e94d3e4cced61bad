"""`patchq sync`: observe; where there is something to do, take the step, or open a session."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from patchq.carry.report import SyncReport, nothing
from patchq.carry.workspace import Queue, base_of, upstream_of
from patchq.errors import PatchqError
from patchq.progress import SILENT, Progress
from patchq.upstream.releases import Upstream

if TYPE_CHECKING:
    from patchq.carry.session import Session


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
    holds; what has none opens a session. Where one is open, this tells how it stands. Raises
    PatchqError for an unknown release, another one than the open session's, or a series that is
    no series.
    """
    with upstream_of(queue, offline=offline, refresh=refresh, progress=progress) as upstream:
        now = None if dry_run else _open(queue, upstream, onto)
        if now is not None:
            from patchq.carry.pulls.watch import watch
            from patchq.carry.resume import again, resume

            # The session may be days old: what was seen is kept, and `resume` reads it again.
            _, as_of = watch(queue, upstream.as_of(), offline=offline, progress=progress)
            report = again(resume(queue, upstream, now, progress))
            return replace(report, upstream=as_of, recovered=recovered)
        name = upstream.latest() if onto == "latest" else onto
        if _stands_on(queue, upstream, name):
            return replace(nothing(queue, upstream.as_of()), recovered=recovered)
        target = upstream.release(name)
        base = base_of(queue, upstream)
        # A step loads much that a sync with nothing to do can spare.
        from patchq.carry.pulls.watch import watch
        from patchq.carry.step import attempt, record

        queue, as_of = watch(queue, upstream.as_of(), offline=offline, progress=progress)
        step = attempt(queue, base, target, as_of, upstream.store, progress, offline=offline)
        report = replace(step.report, dry_run=dry_run)
        if not dry_run and step.ready:
            report = record(queue, step, progress)
        elif not dry_run and step.carry.asks:
            from patchq.carry.resume import begin

            report = begin(queue, upstream, base, target, step)
    return replace(report, recovered=recovered)


def idle(
    queue: Queue, *, onto: str = "latest", offline: bool = False, refresh: bool = False
) -> SyncReport | None:
    """The report where there is nothing to do, found without a lock; else None."""
    if (queue.project.private / "sessions" / queue.config.name).exists():
        return None
    with upstream_of(queue, offline=offline, refresh=refresh) as upstream:
        name = upstream.latest() if onto == "latest" else onto
        if not _stands_on(queue, upstream, name):
            return None
        return nothing(queue, upstream.as_of())


def _open(queue: Queue, upstream: Upstream, onto: str) -> Session | None:
    """The open session. One whose end was recorded before it could be removed is removed."""
    if not (queue.project.private / "sessions" / queue.config.name).exists():
        return None
    from patchq.carry import session

    now = session.needed(queue.project, queue.config.name)
    if queue.is_proved and (now.onto, now.commit) == (queue.state.release, queue.state.commit):
        session.remove(queue.project, now.queue)
        return None
    if onto != "latest" and onto.removeprefix("v") != now.onto.removeprefix("v"):
        place = session.tree_of(queue.project, now.queue)
        raise PatchqError(
            f"a session of {now.queue} onto {now.onto} is open in {place}",
            "end it first: `patchq sync --continue`, or `patchq sync --abort`",
        )
    return now


def _stands_on(queue: Queue, upstream: Upstream, name: str) -> bool:
    """Whether the series stands, proved, on that very release."""
    if not queue.is_proved:
        return False
    if upstream.names_are_fixed:
        return name.removeprefix("v") == queue.state.release
    target = upstream.release(name)
    return (target.name, target.commit) == (queue.state.release, queue.state.commit)
