"""The working tree of a queue, opened: what is applied, what was edited, and moving from one
state to another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from patchq.carry.workspace import Queue, base_of, upstream_of
from patchq.errors import PatchqError
from patchq.gitstore.store import Store
from patchq.gitstore.worktree import EMPTY_TREE, Edit, Plan, Worktree, is_litter
from patchq.progress import SILENT, Progress
from patchq.upstream.releases import Upstream
from patchq.work import state as states
from patchq.work.state import Below, Place, State


@dataclass
class Desk:
    """A queue with its store, its base and its working tree. `state` is what is on disk."""

    queue: Queue
    store: Store
    base: Below
    place: Place
    worktree: Worktree
    state: State | None

    @property
    def stands(self) -> State:
        """Raises PatchqError where no working tree was made yet."""
        if self.state is None:
            raise PatchqError(
                f"{self.queue.config.name} has no working tree yet",
                "`patchq push` makes one with the first patch on it, `patchq push -a` with all",
            )
        return self.state

    def all_edits(self) -> tuple[Edit, ...]:
        """What stands there beside the tree, litter included."""
        return self.worktree.edits() if self.state and self.worktree.is_ready else ()

    def edits(self) -> tuple[Edit, ...]:
        """What was edited and not refreshed."""
        return tuple(edit for edit in self.all_edits() if not is_litter(edit.path))

    def plan(self, target: State, edits: Sequence[Edit] | None = None) -> Plan:
        """The way to `target`; `edits` where they are known. Raises Blocked, nothing is changed."""
        return self.worktree.plan(self._origin(), target.wanted, edits)

    def move(self, target: State, plan: Plan | None = None) -> None:
        """Bring the files to `target` and write it down.

        Raises Blocked, and nothing has changed, where edits stand in the way.
        """
        plan = plan or self.plan(target)
        target = replace(target, stands=target.wanted, origin=self._origin())
        states.write(self.queue.project, self.place, target)
        self.worktree.carry_out(plan, target.top.commit)
        self.settle(target)

    def settle(self, target: State) -> None:
        """Write down that the files are those of `target`."""
        self.state = replace(target, stands=target.wanted, origin=None)
        states.write(self.queue.project, self.place, self.state)

    def mend(self) -> None:
        """Complete a switch that was killed."""
        state = self.state
        if state is not None and state.origin is not None:
            self.worktree.repair(state.origin, state.stands, state.top.commit)
            self.settle(state)
        elif state is not None and self.worktree.exists:
            self.worktree.ensure(state.stands)

    def _origin(self) -> str:
        return self.state.stands if self.state and self.worktree.exists else EMPTY_TREE


@contextmanager
def opened(queue: Queue, *, progress: Progress = SILENT) -> Iterator[Desk]:
    """The queue's working tree; the caller holds the lock. A killed switch is completed first."""
    with upstream_of(queue, progress=progress) as upstream:
        desk = _desk(queue, upstream)
        desk.mend()
        yield desk


def _desk(queue: Queue, upstream: Upstream) -> Desk:
    place = states.place_of(queue.project, queue.config.name)
    state = states.read(place)
    here = Below(queue.state.release, queue.state.commit, queue.state.tree)
    if state is None or state.base != here or not _known(upstream.store, state):
        found = base_of(queue, upstream)
        here = Below(found.name, found.commit, found.tree)
    return at(queue, upstream.store, here, state)


def at(queue: Queue, store: Store, base: Below, state: State | None) -> Desk:
    place = states.place_of(queue.project, queue.config.name)
    worktree = Worktree(store, place.tree, place.git_dir)
    return Desk(queue, store, base, place, worktree, state)


def _known(store: Store, state: State) -> bool:
    """Whether the store still has what the tree stands on (a cache may be thrown away)."""
    return all_known(store, [state.base.commit, state.top.commit, state.stands])


def all_known(store: Store, names: Sequence[str]) -> bool:
    """Whether all of these objects are in the store."""
    try:
        for name in names:
            store.objects.tree_of(name)
    except PatchqError:
        return False
    return True
