"""`patchq pr drop` and `patchq pr refuse`: a pull request that is not, or no longer, watched."""

from __future__ import annotations

from dataclasses import replace

from patchq.carry import decisions, journal
from patchq.carry.pulls import files, look
from patchq.carry.pulls.add import key_of
from patchq.carry.pulls.book import Entry
from patchq.carry.pulls.model import LeftReport
from patchq.carry.workspace import Queue
from patchq.errors import PatchqError
from patchq.progress import SILENT, Progress


def drop(queue: Queue, text: str) -> LeftReport:
    """Track the pull request no longer. The caller holds the lock.

    Raises PatchqError where it is not tracked.
    """
    key = key_of(queue, text)
    found = _find(queue, key)
    if found is None or found.why is None:
        used = f": {_names(found)} names it" if found and found.uses else ""
        raise PatchqError(
            f"{key} is not tracked{used}",
            "take that patch out of the series" if used else "see `patchq pr list`",
        )
    changes = files.untracked(queue.project, queue.config.name, key)
    notes: tuple[str, ...] = ()
    if found.uses:
        notes = (f"its state is still looked at, for {_names(found)} names it",)
    else:
        changes |= _forget(queue, key)
    entry = journal.record(queue.project, "pr drop", key, changes)
    return LeftReport(
        queue.config.name, key, "dropped", found.why, notes, entry.id if entry else None
    )


def refuse(
    queue: Queue, text: str, why: str, *, offline: bool = False, progress: Progress = SILENT
) -> LeftReport:
    """Record that the pull request is not wanted, why, and its head of now if that is reached.

    The caller holds the lock.

    Raises PatchqError where a patch names it.
    """
    key = key_of(queue, text)
    found = _find(queue, key)
    if found is not None and found.uses:
        raise PatchqError(
            f"{key} cannot be refused: {_names(found)} names it",
            "take that patch out of the series first",
        )
    if not why.strip():
        raise PatchqError("a refusal needs its reason", 'give it with --why "..."')
    looked = look.look(queue, keys=[key], offline=offline, progress=progress)
    pull = looked.state.pulls.get(key)
    head = pull.head_sha if pull is not None else ""
    changes = decisions.answered(queue.project, queue.config.name, key, "refuse", why, head)
    changes |= files.untracked(queue.project, queue.config.name, key)
    changes |= _forget(queue, key)
    entry = journal.record(queue.project, "pr refuse", f"{key}: {why}", changes)
    return LeftReport(queue.config.name, key, "refused", why, (), entry.id if entry else None)


def _forget(queue: Queue, key: str) -> dict[str, bytes | None]:
    """The record of one that nobody watches goes."""
    pulls = {name: pull for name, pull in queue.state.pulls.items() if name != key}
    return {**queue.state_file(replace(queue.state, pulls=pulls))}


def _find(queue: Queue, key: str) -> Entry | None:
    return next((entry for entry in look.entries(queue) if entry.key == key), None)


def _names(entry: Entry) -> str:
    return ", ".join(use.file for use in entry.uses)
