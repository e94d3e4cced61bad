"""`patchq pr refresh`: what moved between the pinned heads and today's; take it or leave it."""

from __future__ import annotations

from dataclasses import replace

from patchq.carry import decisions, journal
from patchq.carry.pulls import look
from patchq.carry.pulls.accept import Accepted, accept
from patchq.carry.pulls.add import key_of
from patchq.carry.pulls.compare import moved, opened
from patchq.carry.pulls.model import Asked, Moved, RefreshReport
from patchq.carry.pulls.watch import forget
from patchq.carry.workspace import Queue
from patchq.errors import PatchqError
from patchq.progress import SILENT, Progress


def refresh(
    queue: Queue,
    text: str | None = None,
    *,
    take: bool = False,
    hold: bool = False,
    why: str = "",
    offline: bool = False,
    dry_run: bool = False,
    progress: Progress = SILENT,
) -> RefreshReport:
    """Look at every pull request (or the one that `text` names) and record what is news.

    `take` takes the new head of that one, `hold` keeps the pinned one and is not asked again about
    this head. The caller holds the lock. Raises PatchqError where there is nothing to take or
    hold, or a head is not reached.
    """
    keys = None if text is None else [key_of(queue, text)]
    looked = look.look(queue, keys=keys, offline=offline, progress=progress)
    now = replace(queue, states={**queue.states, queue.config.name: looked.state})
    entries = [each for each in look.entries(now) if keys is None or each.key in keys]
    if keys is not None and not any(each.why is not None or each.uses for each in entries):
        raise PatchqError(f"{keys[0]} is not tracked", "track it with `patchq pr add`")
    report = RefreshReport(
        queue.config.name,
        (),
        Asked(looked.as_of, looked.means, looked.missing, offline),
        dry_run=dry_run,
    )
    changes: dict[str, bytes | None] = {**queue.state_file(looked.state)}
    with opened(now, offline=offline, progress=progress) as heads:
        news = looked.news
        found = [
            moved(heads, each, news.get(each.key, ()), named=keys is not None) for each in entries
        ]
        if take or hold:
            (one,) = found
            _require_moved(one, "take" if take else "hold")
            if take:
                done = accept(heads, one.entry)
                report = _accepted(report, done)
                changes |= done.changes
                if not done.stops:
                    note = (
                        one.why if done.patches else "no patch was made of it: only the pin moved"
                    )
                    found = [replace(one, done="accepted", why=note)]
                    changes |= decisions.forgotten(queue.project, queue.config.name, one.entry.key)
            else:
                assert one.entry.pull is not None
                head = one.entry.pull.head_sha
                found = [replace(one, done="held")]
                changes |= decisions.answered(
                    queue.project, queue.config.name, one.entry.key, "hold", why, head
                )
    report = replace(report, moved=tuple(found))
    if report.stops or dry_run:
        return report
    entry = journal.record(queue.project, "pr refresh", _summary(report), changes)
    forget(queue)
    return replace(report, journal=entry.id if entry else None)


def _require_moved(one: Moved, verb: str) -> None:
    if one.entry.stand not in ("moved", "held"):
        raise PatchqError(
            f"the head of {one.entry.key} is the pinned one, or not known: there is nothing to"
            f" {verb}",
            "see `patchq pr show`",
        )


def _accepted(report: RefreshReport, done: Accepted) -> RefreshReport:
    return replace(
        report,
        patches=done.patches,
        dropped=done.dropped,
        own_edits=done.edited,
        stops=done.stops,
        tree=done.tree,
        proof=done.proof,
    )


def _summary(report: RefreshReport) -> str:
    told = [f"{each.entry.key} {each.done}" for each in report.moved if each.done != "asked"]
    news = sum(bool(each.news) for each in report.moved)
    return "; ".join(each for each in told if not each.endswith(" ")) or f"news of {news}"
