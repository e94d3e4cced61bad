"""The series changed underneath the working tree (a sync, an undo, another command, git): the
tree goes along, to the same top patch as it reads now.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from patchq.carry.workspace import Queue
from patchq.errors import PatchqError
from patchq.gitstore.store import Store
from patchq.gitstore.worktree import Blocked
from patchq.paths import named
from patchq.queue.patch import Patch
from patchq.work import desk as desks
from patchq.work import state as states
from patchq.work.desk import Desk
from patchq.work.state import Below, Placed, State, content_id


@dataclass(frozen=True)
class Followed:
    """The tree went along (`moved`), or `blocked` names the edits that kept it where it was.

    `says` is one sentence about it.
    """

    top: str | None
    moved: bool
    blocked: tuple[bytes, ...]
    says: str


def follow(queue: Queue, store: Store) -> Followed | None:
    """Bring the working tree of `queue` along, after its series was changed.

    The caller holds the lock; `queue` is read anew. None where there is no tree, or nothing to do.
    Edits are never overwritten: the tree stays then, and `blocked` names them.
    """
    state = states.read(states.place_of(queue.project, queue.config.name))
    if state is None:
        return None
    base = Below(queue.state.release, queue.state.commit, queue.state.tree)
    desk = desks.at(queue, store, base, state)
    desk.mend()
    return bring_along(desk)


def bring_along(desk: Desk) -> Followed | None:
    """`follow`, on a desk that is open."""
    state, series = desk.state, desk.queue.series.applied
    if state is None:
        return None
    if not desks.all_known(desk.store, [state.top.commit, state.stands]):
        _make_anew(desk, state)
    if states.is_of(state, desk.base, series) and desk.worktree.exists:
        return None
    from patchq.work.place import place  # loads much, and is rarely needed

    keep = _kept(desk, state, series)
    want = series[len(keep) : _reach(state, series)]
    placed = place(desk.store, keep[-1] if keep else desk.base, want)
    target = State(desk.base, (*keep, *placed))
    top = target.applied[-1].name if target.applied else None
    try:
        desk.move(target)
    except Blocked as found:
        says = (
            f"The series changed, but {named(found.paths)} in {desk.worktree.folder} has edits of"
            " yours that following it would overwrite: the working tree stays as it was."
        )
        return Followed(top, False, found.paths, says)
    return Followed(top, True, (), _told(desk, len(placed) < len(want), top))


def required(desk: Desk) -> str:
    """Bring the tree along before a command works in it; the sentence about it, if any.

    Raises PatchqError where edits stand in the way, or a conflict is open that belongs to a series
    that changed.
    """
    done = bring_along(desk)
    if done is None or done.moved:
        return done.says if done else ""
    state = desk.stands
    if state.pending:
        raise PatchqError(
            f"the series changed while the conflict of {state.pending.name} was open",
            "`patchq pop` gives the conflict up and goes along; what you resolved is kept beside",
        )
    raise PatchqError(
        f"the series changed, and {named(done.blocked)} in {desk.worktree.folder} has edits of"
        " yours that following it would overwrite",
        "put them away with `git stash` there, run this again, then `git stash pop`",
    )


def _kept(desk: Desk, state: State, series: Sequence[Patch]) -> tuple[Placed, ...]:
    """Those at the bottom that are as they were."""
    if state.base != desk.base:
        return ()
    count = 0
    for each, patch in zip(state.applied, series, strict=False):
        if (each.name, each.id) != (patch.name, content_id(patch)):
            break
        count += 1
    return state.applied[:count]


def _reach(state: State, series: Sequence[Patch]) -> int:
    """How many patches are applied then: up to the old top, or the nearest below that is left."""
    places = {patch.number: place for place, patch in enumerate(series, 1)}
    numbers = [each.number for each in state.applied]
    if state.pending:
        numbers.append(state.pending.number)
    return next((places[each] for each in reversed(numbers) if each in places), 0)


def _make_anew(desk: Desk, state: State) -> None:
    """The store lost what the tree stands on; the same patches give the same objects again.

    Raises PatchqError where the patches are others by now.
    """
    from patchq.work.place import place

    series = desk.queue.series.applied
    if not states.is_of(state, desk.base, series) or state.pending:
        raise PatchqError(
            f"the cache lost what {desk.worktree.folder} stands on, and it cannot be made anew",
            f"move {desk.place.folder} away (your edits are in its tree/) and push anew",
        )
    place(desk.store, desk.base, series[: len(state.applied)])


def _told(desk: Desk, short: bool, top: str | None) -> str:
    where = f"{top} is on top" if top else "nothing is applied"
    says = f"The working tree went along with the series: {where} in {desk.worktree.folder}."
    if short:
        says += " The next patch does not apply to what is below it: `patchq push` shows how."
    return says
