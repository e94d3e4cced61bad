"""Back to the release before, on all nodes: the links change places, nothing is copied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from patchq.cluster import errand, lock
from patchq.cluster.config import Cluster, Node
from patchq.cluster.nodes import Reach, sound
from patchq.cluster.ranks import Status, ask
from patchq.cluster.shell import Shell
from patchq.errors import PatchqError
from patchq.progress import SILENT, Progress
from patchq.release import installed
from patchq.release.installed import Release


@dataclass(frozen=True)
class RollbackReport:
    """`left` is what was current before; `running`: the nodes on which it runs on."""

    cluster: Cluster
    left: Release
    now: Release
    running: tuple[str, ...]
    dry_run: bool = False


def rollback(
    cluster: Cluster, *, dry_run: bool = False, progress: Progress = SILENT
) -> RollbackReport:
    """Make the release before the current one on all nodes; a second time, it is undone.

    Ranks that run go on with what they have. Raises PatchqError where a node has no release before,
    Incomplete where one is not reached; nothing is switched then.
    """
    with Reach(cluster) as reach, lock.held(reach, f"rollback {cluster.name}"):
        progress.step(f"asking the nodes of {cluster.name}")
        states = sound(reach.each(lambda node, there: ask(there, node, 0)))
        left, now = _pair(states)
        wanted = {state.node.name: _digest(state, now.number) for state in states}

        def switch(node: Node, there: Shell) -> None:
            errand.run(there, node, "files.switch", {"digest": wanted[node.name]})

        if not dry_run:
            progress.step(f"going back to release {now.number}")
            sound(reach.each(switch))
        running = tuple(state.node.name for state in states if state.alive)
        return RollbackReport(cluster, left, now, running, dry_run)


def _pair(states: Sequence[Status]) -> tuple[Release, Release]:
    """What rank 0 has, and the one before. An interrupted switch left the nodes apart: then the one
    that all have."""
    first = states[0]
    current, before = installed.release(first.current), installed.release(first.previous)
    if current is None:
        raise PatchqError(f"{first.node.name} has no release", "`patchq install N` installs one")
    if before is None or not all(_has(state, before.number) for state in states):
        lacking = next((s for s in states if before and not _has(s, before.number)), first)
        raise PatchqError(
            f"{lacking.node.name} has no release before {current.number}",
            "`patchq install N` installs any other one",
        )
    return current, before


def _has(state: Status, number: int) -> bool:
    return any(each is not None and each.number == number for each in _both(state))


def _both(state: Status) -> tuple[Release | None, Release | None]:
    return installed.release(state.current), installed.release(state.previous)


def _digest(state: Status, number: int) -> str:
    return next(each.digest for each in _both(state) if each is not None and each.number == number)
