"""A queue opened for a command: its settings, series, recorded state and upstream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from patchq.carry import journal, lock
from patchq.config import Project, QueueConfig, find_project, load_queue
from patchq.errors import PatchqError
from patchq.progress import SILENT, Progress
from patchq.queue import series as serieses
from patchq.queue.patch import Patch
from patchq.queue.series import Series
from patchq.upstream import state as states
from patchq.upstream.releases import Release, Upstream
from patchq.upstream.sources import open_upstream
from patchq.upstream.state import QueueState


@dataclass(frozen=True)
class Queue:
    """Everything on disk about one queue, read once."""

    project: Project
    config: QueueConfig
    series: Series
    states: dict[str, QueueState]

    @property
    def state(self) -> QueueState:
        """Raises PatchqError where the queue has no base yet."""
        found = self.states.get(self.config.name)
        if found is None:
            raise PatchqError(
                f"upstream/state.json has no base for the queue {self.config.name!r}",
                "restore the file from git, or make the queue anew with `patchq init`",
            )
        return found

    @property
    def folder(self) -> Path:
        return self.project.root / self.config.series

    def path_of(self, patch: Patch) -> str:
        """The patch's file, as a path from the project's root."""
        return f"{self.config.series}/{patch.file}"

    @property
    def is_proved(self) -> bool:
        """Whether the series on disk is the one that was proved on the recorded base."""
        return self.state.series == self.series.digest

    def state_file(self, state: QueueState) -> dict[str, bytes]:
        """The state file's path and bytes with this queue's state exchanged."""
        return {"upstream/state.json": states.format({**self.states, self.config.name: state})}


def read_queue(project: Project, name: str | None) -> Queue:
    """Raises PatchqError for whatever is malformed in it."""
    config = load_queue(project, name)
    series = serieses.read(project.root / config.series)
    return Queue(project, config, series, states.read(project.state_file))


@contextmanager
def writing(start: Path, command: str) -> Iterator[tuple[Project, str | None]]:
    """The project, locked for this command, after an interrupted one was completed or reverted.

    Yields the project and one sentence about what was recovered, if anything.
    """
    project = find_project(start)
    with lock.hold(project, command):
        yield project, journal.recover(project)


def reading(start: Path, command: str) -> tuple[Project, str | None]:
    """The project for a command that only reads; an interrupted one is completed first."""
    project = find_project(start)
    if not journal.unfinished(project):
        return project, None
    with lock.hold(project, command):
        return project, journal.recover(project)


def quiet_queue(start: Path, name: str | None) -> Queue | None:
    """The queue, without a lock; None where an interrupted command is to be completed first."""
    project = find_project(start)
    return None if journal.unfinished(project) else read_queue(project, name)


@contextmanager
def upstream_of(
    queue: Queue,
    *,
    offline: bool = False,
    refresh: bool = False,
    progress: Progress = SILENT,
) -> Iterator[Upstream]:
    upstream = open_upstream(
        queue.config, queue.project.root, offline=offline, refresh=refresh, progress=progress
    )
    try:
        yield upstream
    finally:
        upstream.close()


def base_of(queue: Queue, upstream: Upstream) -> Release:
    """The recorded base, in the store.

    Raises PatchqError where upstream now has another tree under that name.
    """
    state = queue.state
    base = upstream.release(state.release, commit=state.commit)
    if base.tree != state.tree:
        raise PatchqError(
            f"upstream's {state.release} has the tree {base.tree[:12]} now,"
            f" upstream/state.json recorded {state.tree[:12]}",
            "find out who changed a release; `patchq init` makes a queue on the new one",
        )
    return Release(state.release, base.commit, base.tree, base.facts)
