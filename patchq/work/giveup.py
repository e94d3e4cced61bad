"""An open conflict given up: the files go back, what was resolved so far is kept as a commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from patchq.gitstore.worktree import Edit
from patchq.work.desk import Desk
from patchq.work.state import State


def give_up(desk: Desk) -> tuple[str, ...]:
    """Put the files back to the patch below; sentences about it.

    Edits in files that the patch does not touch stay where they are.
    """
    state = desk.stands
    assert state.pending is not None
    touched = {change.path for change in desk.store.changes(state.pending.tree, state.top.tree)}
    mine = [edit for edit in desk.edits() if edit.path in touched]
    says = (_kept(desk, state, mine),) if mine else ()
    desk.move(replace(desk.stands, pending=None))
    return says


def _kept(desk: Desk, state: State, mine: Sequence[Edit]) -> str:
    """Keep a half-made resolution where the tree's own git finds it, and take it for what stands.

    The files then are no edits any more, and may be put back.
    """
    assert state.pending is not None
    name = state.pending.name
    tree = desk.worktree.write_tree(mine)
    made = desk.worktree.keep(tree, state.top.commit, f"{name}, half resolved", f"given-up/{name}")
    # The same files, known by another tree: nothing is written.
    desk.move(replace(state, pending=replace(state.pending, tree=tree)))
    return (
        f"What you had resolved of {name} is kept: `git show {made[:12]}` in"
        f" {desk.worktree.folder}."
    )
