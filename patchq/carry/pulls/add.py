"""`patchq pr add`: track a pull request, or make patches of it."""

from __future__ import annotations

from dataclasses import replace

from patchq.carry import decisions, journal
from patchq.carry.pulls import files, look
from patchq.carry.pulls.book import Entry, uses_of
from patchq.carry.pulls.make import How, Made, make, require_free
from patchq.carry.pulls.model import AddReport, Asked
from patchq.carry.workspace import Queue
from patchq.config import Project, load_queue, queue_names
from patchq.errors import Incomplete, PatchqError
from patchq.forge.model import parse_key
from patchq.progress import SILENT, Progress


def queue_for(project: Project, text: str, queue: str | None) -> str | None:
    """The queue that a pull request belongs to: the named one, else the one of its upstream."""
    if queue is not None or "/" not in text:
        return queue
    repo, _ = parse_key(text)
    for name in queue_names(project):
        if _same(load_queue(project, name).github, repo):
            return name
    return None


def key_of(queue: Queue, text: str) -> str:
    """OWNER/REPO#N of what people write; `#N` is of the queue's own upstream.

    Raises PatchqError for anything else.
    """
    github = queue.config.github
    repo, number = parse_key(text, github)
    return f"{github if github and _same(github, repo) else repo}#{number}"


def _same(one: str | None, other: str) -> bool:
    return one is not None and one.lower() == other.lower()


def add(
    queue: Queue,
    text: str,
    *,
    why: str = "",
    how: How | None = None,
    offline: bool = False,
    dry_run: bool = False,
    progress: Progress = SILENT,
) -> AddReport:
    """Track the pull request that `text` names, or make patches of it. The caller holds the lock.

    One of which patches are made is watched because they name it; with a `why` it is tracked as
    well. Raises PatchqError where it is not known upstream, or nothing can be made of it.
    """
    how = how or How()
    key = key_of(queue, text)
    require_free(queue, how)
    repo = key.rpartition("#")[0]
    if how.makes and queue.config.github and not _same(queue.config.github, repo):
        raise PatchqError(
            f"the queue {queue.config.name!r} patches {queue.config.github}, not {repo}",
            "track it without making a patch, or make a queue for it with `patchq init`",
        )
    looked = look.look(queue, keys=[key], offline=offline, progress=progress)
    pull = looked.state.pulls.get(key)
    if pull is None and not offline and not how.makes:
        raise Incomplete(
            "; ".join(looked.missing) or f"{key} was not found",
            "see to the number and the network; --offline tracks it unseen",
        )
    made = Made(looked.state)
    if how.makes:
        made = make(queue, looked.state, key, how, offline=offline, progress=progress)
    tracks = bool(why) or not how.makes
    report = AddReport(
        queue.config.name,
        Entry(
            key,
            why if tracks else None,
            tuple(use for patch in made.patches for use in uses_of(patch).values()),
            made.state.pulls.get(key),
        ),
        Asked(looked.as_of, looked.means, looked.missing, offline),
        tracks,
        made.patches,
        made.left_out,
        made.there,
        made.stops,
        made.notes,
        made.tree,
        made.proof,
        dry_run=dry_run,
    )
    if made.stops:
        return report
    return _recorded(queue, report, made, why)


def _recorded(queue: Queue, report: AddReport, made: Made, why: str) -> AddReport:
    project, name, key = queue.project, queue.config.name, report.entry.key
    changes = dict(made.changes)
    said = decisions.pulls(project, name).get(key)
    if said is not None:
        changes |= decisions.forgotten(project, name, key)
        if said.answer == "refuse":
            told = f"it was refused ({said.why}); that answer is taken away"
            report = replace(report, notes=(*report.notes, told))
    if report.tracked:
        changes |= files.tracked(project, name, key, why)
    changes |= queue.state_file(made.state)
    if report.dry_run:
        return report
    count = len(report.patches)
    what = f": {count} patch{'es' if count != 1 else ''}" if count else ""
    entry = journal.record(project, "pr add", f"{key}{what}", changes)
    return replace(report, journal=entry.id if entry else None)
