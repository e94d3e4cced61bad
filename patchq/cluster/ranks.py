"""What runs on a cluster: asked, and stopped with nothing left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from patchq.cluster import errand, lock
from patchq.cluster.causes import Cause, cause, first_of
from patchq.cluster.config import Cluster, Node
from patchq.cluster.nodes import Reach, on_all
from patchq.cluster.shell import Shell
from patchq.errors import PatchqError
from patchq.progress import SILENT, Progress

PATIENCE = 30.0
"""Seconds in which a rank ends when it is asked to; after that it is killed."""


@dataclass(frozen=True)
class Status:
    """What a node says: a process that runs as its rank, and what is installed.

    `current`, `previous`: records of releases (wheels, environment, python, labels, digest).
    `rank`: the record of a start (run, by, about, since, log, ended), None where none was made.
    `alive`: its process runs; `frozen`: it is stopped (SIGSTOP). `starts`: since the deployment.
    `health`: the status of `/health` (rank 0; None: no answer). `lock`: who holds it, for what.
    """

    node: Node
    current: Mapping[str, Any] | None
    previous: Mapping[str, Any] | None
    rank: Mapping[str, Any] | None
    lock: Mapping[str, Any] | None
    alive: bool = False
    frozen: bool = False
    processes: int = 0
    starts: int = 0
    health: int | None = None
    progress: Mapping[str, Any] | None = None
    lines: tuple[str, ...] = ()

    @property
    def restarts(self) -> int:
        """Starts after the first since the runner was deployed."""
        return max(0, self.starts - 1)


@dataclass(frozen=True)
class ClusterStatus:
    """The nodes in the order of ranks; a PatchqError stands for one that did not answer."""

    cluster: Cluster
    nodes: tuple[Status | PatchqError, ...]

    @property
    def exit_code(self) -> int:
        return max(
            (each.exit_code for each in self.nodes if isinstance(each, PatchqError)), default=0
        )


@dataclass(frozen=True)
class Stopped:
    """What became of a node's rank. `ran`: there was something to stop; `killed`: how many
    processes did not listen; `left`: processes that are there even so."""

    node: Node
    ran: bool
    killed: int
    left: tuple[int, ...]


@dataclass(frozen=True)
class StopReport:
    cluster: Cluster
    nodes: tuple[Stopped | PatchqError, ...]

    @property
    def exit_code(self) -> int:
        codes = [each.exit_code for each in self.nodes if isinstance(each, PatchqError)]
        codes += [6 for each in self.nodes if isinstance(each, Stopped) and each.left]
        return max(codes, default=0)


def status(cluster: Cluster, *, lines: int = 0, progress: Progress = SILENT) -> ClusterStatus:
    """Ask all nodes; takes no lock."""
    progress.step(f"asking the nodes of {cluster.name}", 0, len(cluster.nodes), "nodes")
    return ClusterStatus(cluster, on_all(cluster, lambda node, there: ask(there, node, lines)))


def ask(there: Shell, node: Node, lines: int = 1) -> Status:
    """What one node says. Raises Incomplete."""
    said = errand.run(there, node, "ranks.report", {"rank": node.rank, "lines": lines})
    given = {key: value for key, value in said.items() if key in Status.__dataclass_fields__}
    return Status(node, **{**given, "lines": tuple(said.get("lines", ()))})


def _exit_of(state: Status) -> int | None:
    """The exit code of a rank; None where it runs, or ended without one being noted."""
    ended = state.rank["ended"] if state.rank is not None else None
    return int(ended["code"]) if ended else None


def why_ended(state: Status) -> Cause | None:
    """The cause that its last lines name."""
    return cause(state.lines, _exit_of(state) or 0)


def blamed(ended: Sequence[Status]) -> Status:
    """Of several ranks that ended (one at least), the one whose end the others followed."""
    first = first_of([(state.node.rank, why_ended(state)) for state in ended])
    return next(state for state in ended if first is None or state.node.rank == first[0])


def fate(state: Status) -> str:
    """How a rank that does not run any more has ended: a sentence without a full stop."""
    code = _exit_of(state)
    how = "is gone" if code is None else f"ended with {code}"
    why = why_ended(state)
    return f"rank {state.node.rank} on {state.node.name} {how}" + (f": {why.says}" if why else "")


def stop(
    cluster: Cluster, *, patience: float = PATIENCE, progress: Progress = SILENT
) -> StopReport:
    """Stop all ranks. A node that is not reached hides no other: what runs there runs on.

    Raises PatchqError where somebody else is at work on the cluster.
    """
    with (
        Reach(cluster) as reach,
        lock.held(reach, f"cluster stop {cluster.name}", partly=True) as missed,
    ):
        reached = [node for node in cluster.nodes if node.name not in missed]
        found = dict(zip(reached, stop_ranks(reach, reached, patience, progress), strict=True))
        return StopReport(
            cluster,
            tuple(found[node] if node in found else missed[node.name] for node in cluster.nodes),
        )


def stop_ranks(
    reach: Reach, nodes: Iterable[Node], patience: float, progress: Progress
) -> tuple[Stopped | PatchqError, ...]:
    """The same over connections that stand, under locks that are held."""
    progress.step(f"stopping the ranks of {reach.cluster.name}", 0, None)

    def one(node: Node, there: Shell) -> Stopped:
        asked = {"rank": node.rank, "patience": patience}
        limit = patience + errand.LIMIT
        said = errand.run(there, node, "ranks.stop", asked, limit)
        ran = bool(said["was"]) and bool(said["ran"])
        return Stopped(node, ran, len(said["killed"]), tuple(said["left"]))

    return reach.each(one, nodes)
