"""What a push comes to: patches as they read, merged where they do not apply, up to a conflict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from patchq.carry.canonical import standing
from patchq.errors import PatchqError
from patchq.gitstore.fastimport import Ident, Write
from patchq.gitstore.store import Store
from patchq.paths import lossless
from patchq.progress import SILENT, Progress
from patchq.queue.patch import Patch
from patchq.queue.series import Series
from patchq.work.desk import Desk
from patchq.work.onto import Onto, Unknown, onto
from patchq.work.place import place
from patchq.work.report import Clash, Moved, Word
from patchq.work.state import Below, Pending, State, content_id

NOBODY = Ident(b"patchq", b"patchq@localhost", 0)


@dataclass(frozen=True)
class Pushed:
    """What a push comes to before anything is written: where it ends, and why there.

    `rewritten` are the patches that were merged and read anew.
    """

    target: State
    moved: tuple[Moved, ...]
    rewritten: tuple[Patch, ...] = ()
    clashes: tuple[Clash, ...] = ()


def pushed(desk: Desk, state: State, to: int, progress: Progress = SILENT) -> Pushed:
    """The patches up to the `to`th on top of what is applied; fewer where one conflicts."""
    store, series = desk.store, desk.queue.series.applied
    moved: list[Moved] = []
    rewritten: list[Patch] = []
    while len(state.applied) < to:
        rest = series[len(state.applied) : to]
        progress.step("pushing", len(state.applied), to, "patches")
        below = state.top
        for each in place(store, below, rest):
            word: Word = "empty" if each.tree == below.tree else "pushed"
            moved.append(Moved(each.name, word))
            state = replace(state, applied=(*state.applied, each))
            below = each
        if len(state.applied) == to:
            break
        patch = series[len(state.applied)]
        found = _merged(store, below, patch)
        if found.clashes:
            pending = _laid_out(store, below, patch, found)
            target = replace(state, pending=pending)
            moved.append(Moved(patch.name, "conflict"))
            return Pushed(target, tuple(moved), tuple(rewritten), found.clashes)
        patch = _anew(store, below, patch, found, series)
        (each,) = place(store, below, [patch])
        rewritten.append(patch)
        moved.append(Moved(patch.name, "empty" if each.tree == below.tree else "merged"))
        state = replace(state, applied=(*state.applied, each))
    return Pushed(state, tuple(moved), tuple(rewritten))


def _merged(store: Store, below: Below, patch: Patch) -> Onto:
    if patch.files is None:
        raise PatchqError(
            f"{patch.file} does not apply on top of {below.name}",
            "its form says not what it was made on, so it cannot be merged: correct the file",
        )
    try:
        return onto(store, below.tree, patch, (below.name, f"{patch.file} before", patch.file))
    except Unknown as error:
        raise PatchqError(
            f"{patch.file} does not apply on top of {below.name}, and {error}",
            "correct the file, or bring the patch in again with `patchq import`",
        ) from error


def tree_with(store: Store, below: Below, writes: Sequence[Write]) -> str:
    """The tree of `below` with `writes` on top."""
    if not writes:
        return below.tree
    with store.fast_import(compression=0) as importer:
        importer.commit(b"", NOBODY, below.commit, writes)
        return store.objects.trees_of(importer.finish())[0]


def _laid_out(store: Store, below: Below, patch: Patch, found: Onto) -> Pending:
    tree = tree_with(store, below, found.shown)
    paths = tuple(lossless(clash.path) for clash in found.clashes)
    return Pending(patch.name, patch.number, content_id(patch), tree, paths)


def _anew(store: Store, below: Below, patch: Patch, found: Onto, series: Sequence[Patch]) -> Patch:
    """The patch as it reads after the merge."""
    tree = tree_with(store, below, found.writes)
    (diff,) = store.diff_texts([(below.tree, tree)])
    return patch.with_diff(diff) if diff else standing(store, tree, patch, series)


def exchanged(series: Series, changed: Sequence[Patch]) -> Series:
    """The series with these patches in place of those of the same name."""
    by_name = {patch.name: patch for patch in changed}
    lines = tuple(
        replace(line, patch=by_name.get(line.patch.name, line.patch)) if line.patch else line
        for line in series.lines
    )
    return Series(lines, series.retired)
