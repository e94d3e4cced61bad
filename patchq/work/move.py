"""`push`, `pop` and `goto`: which patch is on top in the working tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from patchq.carry.workspace import Queue
from patchq.errors import PatchqError
from patchq.progress import SILENT, Progress
from patchq.queue.patch import Patch
from patchq.work.desk import Desk, opened
from patchq.work.follow import required
from patchq.work.giveup import give_up
from patchq.work.report import Clash, Moved, WorkReport, standing
from patchq.work.state import State

if TYPE_CHECKING:
    from patchq.carry.shelf import Entry
    from patchq.work.pushing import Pushed


def push(
    queue: Queue,
    where: str | None,
    *,
    everything: bool = False,
    dry_run: bool = False,
    progress: Progress = SILENT,
) -> WorkReport:
    """Apply the next patch, the next N, those up to a name, or all.

    Raises PatchqError where there is none, or where a conflict is open.
    """
    with opened(queue, progress=progress) as desk:
        told = required(desk)
        state = desk.state or State(desk.base)
        require_resolved(desk, state)
        done, series = len(state.applied), queue.series.applied
        if everything:
            to = len(series)
        elif where is None or _is_count(where):
            to = done + int(where or 1)
        else:
            to = _place_of(queue, where)
            if to <= done:
                raise PatchqError(
                    f"{series[to - 1].name} is applied already",
                    f"`patchq goto {series[to - 1].name}` pops what is above it",
                )
        if done >= len(series) and not everything:
            raise PatchqError(_all_there(series), "`patchq new NAME` adds one")
        return _go(desk, "push", min(to, len(series)), told, dry_run, progress)


def pop(
    queue: Queue,
    where: str | None,
    *,
    everything: bool = False,
    dry_run: bool = False,
    progress: Progress = SILENT,
) -> WorkReport:
    """Take off the top patch, the top N, those above a name, or all.

    A patch whose conflict is open counts as one: it is given up. Raises PatchqError where nothing
    is applied, or edits stand in the way.
    """
    with opened(queue, progress=progress) as desk:
        given: tuple[Moved, ...] = ()
        told: tuple[str, ...] = ()
        state = desk.stands
        if state.pending:
            given = (Moved(state.pending.name, "given up"),)
            if not dry_run:
                told = give_up(desk)
        if not dry_run or not given:
            told = (*told, *filter(None, [required(desk)]))
        done = len(desk.stands.applied)
        if everything:
            to = 0
        elif where is None or _is_count(where):
            to = max(0, done - int(where or 1) + len(given))
        else:
            to = _place_of(queue, where)
            if to > done:
                raise PatchqError(f"{where} is not applied", f"`patchq push {where}` applies it")
        if not (done or given or everything):
            raise PatchqError("no patch is applied", "`patchq push` applies the first")
        report = _go(desk, "pop", to, "", dry_run, progress)
        return replace(report, moved=(*given, *report.moved), says=told)


def goto(
    queue: Queue, name: str, *, dry_run: bool = False, progress: Progress = SILENT
) -> WorkReport:
    """Push or pop until `name` is on top."""
    with opened(queue, progress=progress) as desk:
        told = required(desk)
        require_resolved(desk, desk.state or State(desk.base))
        return _go(desk, "goto", _place_of(queue, name), told, dry_run, progress)


def _go(
    desk: Desk, command: str, to: int, told: str, dry_run: bool, progress: Progress
) -> WorkReport:
    state, entry = desk.state or State(desk.base), None
    clashes: tuple[Clash, ...] = ()
    if to <= len(state.applied):
        moved = tuple(Moved(each.name, "popped") for each in reversed(state.applied[to:]))
        target = replace(state, applied=state.applied[:to], pending=None)
        if not dry_run:
            desk.move(target)
    else:
        # Merging loads much that a pop can spare.
        from patchq.work.pushing import pushed

        done = pushed(desk, state, to, progress)
        target, moved, clashes = done.target, done.moved, done.clashes
        if not dry_run:
            way = desk.plan(target)
            entry = _recorded(desk, command, done)
            progress.step("writing the files")
            desk.move(target, way)
    report = standing(
        desk.queue.config.name,
        command,
        str(desk.worktree.folder),
        target,
        len(desk.queue.series.applied),
        dry_run,
    )
    return replace(
        report,
        moved=moved,
        clashes=clashes,
        says=tuple(filter(None, [told])),
        entry=entry.id if entry else None,
    )


def _recorded(desk: Desk, command: str, done: Pushed) -> Entry | None:
    """Record the patches that a push merged: they read anew."""
    if not done.rewritten:
        return None
    from patchq.carry import journal, plan
    from patchq.work.pushing import exchanged

    queue = desk.queue
    after = exchanged(queue.series, done.rewritten)
    changes = plan.changes(queue.config.series, queue.series, after, {})
    names = ", ".join(patch.name for patch in done.rewritten)
    return journal.record(queue.project, command, f"{names} merged", changes)


def require_resolved(desk: Desk, state: State) -> None:
    """Raises PatchqError where a conflict is open."""
    if state.pending:
        raise PatchqError(
            f"{state.pending.name} conflicts in {', '.join(state.pending.paths)}, and that is open",
            f"resolve it in {desk.worktree.folder}, then `patchq refresh`; or give it up with"
            " `patchq pop`",
        )


def _is_count(where: str) -> bool:
    return where.isdecimal() and len(where) < 4


def _place_of(queue: Queue, name: str) -> int:
    """The place (from 1) of a patch among those that are applied to the release."""
    patch = queue.series.find(name)
    held = queue.series.held
    if patch.name in held:
        raise PatchqError(
            f"{patch.name} is held: {held[patch.name]}", f"`patchq unhold {patch.name}` frees it"
        )
    return queue.series.applied.index(patch) + 1


def _all_there(series: Sequence[Patch]) -> str:
    if not series:
        return "the series is empty"
    return f"every patch is applied; {series[-1].name} is on top"
