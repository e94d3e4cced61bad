"""`new`: an empty patch after the top, for the next edits."""

from __future__ import annotations

from dataclasses import replace

from patchq.carry import journal, plan
from patchq.carry.canonical import marker
from patchq.carry.shelf import now
from patchq.carry.workspace import Queue
from patchq.errors import PatchqError
from patchq.paths import show
from patchq.progress import SILENT, Progress
from patchq.queue import header as headers
from patchq.queue import patch as patches
from patchq.queue.patch import Patch
from patchq.queue.series import Line, Series
from patchq.work.desk import Desk, opened
from patchq.work.follow import required
from patchq.work.move import require_resolved
from patchq.work.place import place
from patchq.work.pushing import pushed
from patchq.work.report import Moved, WorkReport, standing
from patchq.work.state import State


def new(
    queue: Queue,
    name: str,
    subject: str = "",
    *,
    dry_run: bool = False,
    progress: Progress = SILENT,
) -> WorkReport:
    """Add the empty patch `name` after the top, and apply it.

    A queue without a working tree gets one with all its patches applied: the new one is the last.
    Raises PatchqError for a name that is none, or is taken.
    """
    require_name(queue.series, name)
    with opened(queue, progress=progress) as desk:
        told = required(desk)
        state = desk.state
        moved: tuple[Moved, ...] = ()
        if state is None:
            done = pushed(desk, State(desk.base), len(queue.series.applied), progress)
            if done.clashes or done.rewritten:
                raise PatchqError(
                    f"{done.moved[-1].name} does not apply as it reads, so there is no top to"
                    f" put {name} on",
                    "`patchq push -a` goes as far as it can and shows the conflict",
                )
            state, moved = done.target, done.moved
        require_resolved(desk, state)
        patch = _made(desk, state, name, subject)
        after = _inserted(queue.series, state, patch)
        target = replace(state, applied=(*state.applied, *place(desk.store, state.top, [patch])))
        changes = plan.changes(queue.config.series, queue.series, after, {})
        if queue.is_proved:
            proved = queue.state.proved(after.digest, queue.state.runner_tree)
            changes |= queue.state_file(proved)
        entry = None
        if not dry_run:
            way = desk.plan(target)
            entry = journal.record(queue.project, "new", name, changes)
            desk.move(target, way)
        total = len(after.applied)
        report = standing(
            queue.config.name, "new", str(desk.worktree.folder), target, total, dry_run
        )
        return replace(
            report,
            moved=(*moved, Moved(name, "new")),
            says=tuple(filter(None, [told])),
            entry=entry.id if entry else None,
        )


def require_name(series: Series, name: str) -> None:
    """Raises PatchqError where `name` cannot be a patch's, or is one's already."""
    if not patches.FILE.match(f"0000-{name}.patch") or name.isdecimal():
        raise PatchqError(
            f"{show(name)!r} cannot be a patch's name",
            f"write it in small letters, digits and dashes: {patches.slug(name)}"
            if not name.isdecimal()
            else "a number alone would be taken for a patch's number",
        )
    if name in series.names:
        raise PatchqError(
            f"there is a patch {name} already",
            "choose another name; a retired patch keeps its own",
        )


def _made(desk: Desk, state: State, name: str, subject: str) -> Patch:
    # Loads much that a push can spare.
    from patchq.carry.pulls.revert import maintainer

    fields = [
        ("From", maintainer(str(desk.queue.project.root))),
        ("Date", headers.mail_date(int(now().timestamp()), "+0000")),
        ("Subject", subject or name.replace("-", " ").capitalize()),
        ("Origin", "vendor"),
        ("Upstream-Status", "Pending"),
    ]
    header = headers.make(fields, "")
    number = desk.queue.series.next_number
    return patches.make(
        number, name, header, marker(desk.store, state.top.tree, desk.queue.series.all)
    )


def _inserted(series: Series, state: State, patch: Patch) -> Series:
    """The series with `patch` right behind the top one."""
    top = state.applied[-1].name if state.applied else None
    names = [line.patch.name if line.patch else None for line in series.lines]
    if top is not None:
        at = names.index(top) + 1
    else:
        at = next((n for n, line in enumerate(series.lines) if line.kind == "patch"), len(names))
    line = Line("patch", patch.file, patch)
    return Series((*series.lines[:at], line, *series.lines[at:]), series.retired)
