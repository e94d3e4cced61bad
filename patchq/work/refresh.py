"""`refresh`: the edits of the working tree go into a patch, and the patches above are carried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from patchq.carry import journal, plan
from patchq.carry.canonical import marker
from patchq.carry.merge import Blob
from patchq.carry.message import ident, message
from patchq.carry.workspace import Queue
from patchq.errors import PatchqError
from patchq.gitstore.fastimport import Write
from patchq.gitstore.worktree import Edit, is_litter, markers
from patchq.paths import named, show
from patchq.progress import SILENT, Progress
from patchq.queue.patch import Patch
from patchq.queue.series import Series
from patchq.work.desk import Desk, opened
from patchq.work.follow import required
from patchq.work.look import below
from patchq.work.onto import obstacle, reader
from patchq.work.place import place
from patchq.work.proof import tree_after, whole_tree
from patchq.work.pushing import exchanged
from patchq.work.report import Moved, WorkReport, standing
from patchq.work.restack import Restacked, restack
from patchq.work.state import Below, State


@dataclass(frozen=True)
class _Aim:
    """The patch that takes the edits: what it stands on, and its tree with them.

    `stands` is the tree of the files as they are (but for edits that are not taken), `paths` are
    those that the patches above may find otherwise than they know them.
    """

    patch: Patch
    below: Below
    tree: str
    stands: str
    paths: tuple[bytes, ...]


def refresh(
    queue: Queue,
    paths: Sequence[bytes] = (),
    *,
    name: str | None = None,
    dry_run: bool = False,
    progress: Progress = SILENT,
) -> WorkReport:
    """Take the edits (those at or below `paths`, or all) into the top patch, or the applied `name`.

    Completes a push that conflicted. Raises PatchqError where there is nothing to take, conflict
    markers are left, or the edits stand on what a patch above `name` changes.
    """
    with opened(queue, progress=progress) as desk:
        told = required(desk)
        state = desk.stands
        _require_all(desk, state, paths, name)
        found = desk.all_edits()
        edits = [edit for edit in found if not is_litter(edit.path)]
        taken = _chosen(desk, edits, paths)
        aim = _aim(desk, state, taken, name)
        (diff,) = desk.store.diff_texts([(aim.below.tree, aim.tree)])
        patch = aim.patch.with_diff(diff or marker(desk.store, aim.below.tree, queue.series.all))
        series = queue.series.applied
        here = series.index(aim.patch)
        now = reader(desk.store, aim.tree)
        stack = restack(
            desk.store, series[here + 1 :], {path: now(path) for path in aim.paths}, patch.file
        )
        _require_carried(desk, state, here, stack)
        changed = [patch, *_filled(desk, aim.tree, stack)]
        after = exchanged(queue.series, changed)
        applied = state.applied[:here]
        reach = len(state.applied) + (1 if state.pending else 0)
        placed = place(desk.store, aim.below, after.applied[here:reach])
        target = State(desk.base, (*applied, *placed))
        if target.top.tree != aim.stands:
            raise PatchqError(
                f"{patch.name} and the patches above it would not give the files that stand in"
                f" {desk.worktree.folder}",
                "take the edits into the top patch, which is always possible",
            )
        changes = plan.changes(queue.config.series, queue.series, after, {})
        changes |= _proved(desk, state, aim, after, stack)
        entry = None
        if not dry_run:
            way = desk.plan(target, found)
            entry = journal.record(queue.project, "refresh", patch.name, changes)
            desk.move(target, way)
        report = standing(
            queue.config.name, "refresh", str(desk.worktree.folder), target, len(series), dry_run
        )
        return replace(
            report,
            moved=(Moved(patch.name, "refreshed" if diff else "empty"),),
            carried=stack.carried,
            emptied=stack.emptied,
            left=stack.left,
            taken=tuple(edit.path for edit in taken),
            litter=tuple(edit.path for edit in found if is_litter(edit.path)),
            says=tuple(filter(None, [told])),
            entry=entry.id if entry else None,
        )


def _chosen(desk: Desk, edits: Sequence[Edit], paths: Sequence[bytes]) -> tuple[Edit, ...]:
    """The edits at or below `paths`; all without any. Raises PatchqError for a path without one."""
    if not paths:
        return tuple(edits)
    chosen: dict[bytes, Edit] = {}
    for path in paths:
        found = [edit for edit in edits if below(edit.path, path)]
        if not found:
            raise PatchqError(
                f"{show(path)} has no edits in {desk.worktree.folder}",
                f"edited are: {named([e.path for e in edits])}" if edits else "nothing is edited",
            )
        chosen |= {edit.path: edit for edit in found}
    return tuple(chosen[path] for path in sorted(chosen))


def _require_all(desk: Desk, state: State, paths: Sequence[bytes], name: str | None) -> None:
    """Raises PatchqError where only a part of an open conflict would be taken."""
    if state.pending and (
        paths or (name is not None and desk.queue.series.find(name).name != state.pending.name)
    ):
        raise PatchqError(
            f"{state.pending.name} conflicts, and that is open",
            "`patchq refresh` without a name or paths completes it, `patchq pop` gives it up",
        )


def _aim(desk: Desk, state: State, taken: Sequence[Edit], name: str | None) -> _Aim:
    series = desk.queue.series.applied
    if state.pending:
        patch = desk.queue.series.find(state.pending.name)
        _require_no_markers(desk, state)
        tree = desk.worktree.write_tree(taken, switching=True)
        touched = {change.path for change in desk.store.changes(state.top.tree, tree)}
        touched |= {file.path for file in patch.files or ()}
        return _Aim(patch, state.top, tree, tree, tuple(sorted(touched)))
    if not state.applied:
        raise PatchqError("no patch is applied that could take edits", "`patchq new NAME` adds one")
    wanted = desk.queue.series.find(name).name if name is not None else state.top.name
    names = [each.name for each in state.applied]
    if wanted not in names:
        raise PatchqError(f"{wanted} is not applied", f"`patchq push {wanted}` applies it")
    if not taken:
        raise PatchqError(
            f"nothing in {desk.worktree.folder} was edited since the last refresh",
            "edit files there first",
        )
    here = names.index(wanted)
    tree = desk.worktree.write_tree(taken, switching=True)
    changed = tuple(change.path for change in desk.store.changes(state.top.tree, tree))
    own = tree if here == len(names) - 1 else _lower(desk, state, here, tree, changed)
    under = state.applied[here - 1] if here else desk.base
    return _Aim(series[here], under, own, tree, changed)


def _lower(desk: Desk, state: State, here: int, tree: str, changed: Sequence[bytes]) -> str:
    """The tree of the patch at `here` with the edits, which were made on the top's."""
    store, target = desk.store, state.applied[here]
    old, new, own = (reader(store, each) for each in (state.top.tree, tree, target.tree))
    writes = []
    for path in changed:
        before, after, mine = old(path), new(path), own(path)
        if mine != before:
            after = _merged(desk, state, here, path, (before, after, mine))
        elif after is not None and (why := obstacle(store, target.tree, path)):
            raise _stands_on(desk, state, here, path, why)
        writes.append(Write(path, after.mode, after.data) if after else Write(path))
    patch = desk.queue.series.applied[here]
    with store.fast_import(compression=0) as importer:
        importer.commit(message(patch), ident(patch), target.commit, writes)
        return store.objects.trees_of(importer.finish())[0]


def _merged(
    desk: Desk,
    state: State,
    here: int,
    path: bytes,
    sides: tuple[Blob | None, Blob | None, Blob | None],
) -> Blob:
    before, after, mine = sides
    if before is None or after is None or mine is None or not after.mergeable:
        raise _stands_on(desk, state, here, path, "the file is not there or has no lines")
    done = desk.store.merge_file(before.data, mine.data, after.data)
    if done.conflicts:
        raise _stands_on(desk, state, here, path, "the same lines")
    return Blob(after.mode if after.mode != before.mode else mine.mode, done.data)


def _stands_on(desk: Desk, state: State, here: int, path: bytes, why: str) -> PatchqError:
    """The edit belongs to a patch between."""
    names = {each.name for each in state.applied[here + 1 :]}
    touching = [
        patch.name
        for patch in desk.queue.series.applied
        if patch.name in names and any(file.path == path for file in patch.files or ())
    ]
    on = f" of {', '.join(touching)}" if touching else ""
    target = state.applied[here].name
    return PatchqError(
        f"the edit of {show(path)} stands on changes{on} above {target} ({why})",
        f"take it into the top patch, or put it away with `git stash`, `patchq goto {target}` and"
        " make it there",
    )


def _require_no_markers(desk: Desk, state: State) -> None:
    """Raises PatchqError where conflict markers are left in a file of the open conflict."""
    assert state.pending is not None
    left = []
    here = reader(desk.store, state.top.tree)
    for path in state.pending.paths:
        data = desk.worktree.read(path.encode("utf-8", "surrogateescape"))
        if data is None:
            continue
        was = here(path.encode("utf-8", "surrogateescape"))
        own = set(was.data.split(b"\n")) if was else set()
        lines = data.split(b"\n")
        found = [number for number in markers(data) if lines[number - 1] not in own]
        if found:
            left.append(f"{show(path)}:{found[0]}")
    if left:
        raise PatchqError(
            f"conflict markers are left in {', '.join(left)}",
            f"resolve them in {desk.worktree.folder}, then `patchq refresh`;"
            " `patchq pop` gives the patch up",
        )


def _require_carried(desk: Desk, state: State, here: int, stack: Restacked) -> None:
    """Raises PatchqError where an applied patch above cannot be carried."""
    above = {each.name for each in state.applied[here + 1 :]}
    for each in stack.left:
        if each.name in above and each.paths:
            raise _stands_on(desk, state, here, each.paths[0][0], f"{each.name} would conflict")


def _proved(
    desk: Desk, state: State, aim: _Aim, after: Series, stack: Restacked
) -> dict[str, bytes]:
    """The state file with the new series' proof, where there is one."""
    queue = desk.queue
    if stack.left:
        return {}
    if queue.is_proved:
        tree = tree_after(queue, desk.store, after, aim.paths)
    else:
        tree = whole_tree(desk.store, desk.base.tree, after) if state.pending else ""
    return queue.state_file(queue.state.proved(after.digest, tree)) if tree else {}


def _filled(desk: Desk, tree: str, stack: Restacked) -> list[Patch]:
    """Those that read anew; one that touches nothing any more becomes the patch that says so."""
    return [
        patch if patch.diff else patch.with_diff(marker(desk.store, tree, desk.queue.series.all))
        for patch in stack.patches
        if patch.name in (*stack.carried, *stack.emptied)
    ]
