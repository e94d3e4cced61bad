"""What the ranks of a cluster say: kept on the nodes, read, searched and followed from here."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from patchq.cluster import errand
from patchq.cluster.config import Cluster, Node
from patchq.cluster.nodes import Reach, on_all
from patchq.cluster.shell import Shell
from patchq.errors import PatchqError, UsageError

ALL = "all"
_RUN = re.compile(r"[0-9]{8}T[0-9]{6}Z")


@dataclass(frozen=True)
class RunLog:
    """What a rank said in one run; `there`: whether it has a log of it."""

    run: str
    lines: tuple[str, ...]
    there: bool


@dataclass(frozen=True)
class RankLog:
    """The runs that are kept on a node, the oldest first, and what was asked for.

    `cut`: more lines matched than are given.
    """

    node: Node
    runs: tuple[str, ...]
    found: tuple[RunLog, ...]
    cut: bool


@dataclass(frozen=True)
class LogsReport:
    cluster: Cluster
    nodes: tuple[RankLog | PatchqError, ...]

    @property
    def exit_code(self) -> int:
        found = (each.exit_code for each in self.nodes if isinstance(each, PatchqError))
        return max(found, default=0)


def read(
    cluster: Cluster, *, pattern: str | None = None, lines: int = 50, run: str | None = None
) -> LogsReport:
    """The last `lines` lines of each rank, or all that match `pattern` (a regular expression).

    `run`: one that is kept, or "all"; the last where it is None. Raises UsageError for a pattern or
    a run that is none.
    """
    _check(pattern)
    if run is not None and run != ALL and not _RUN.fullmatch(run):
        raise UsageError(
            f"{run!r} is no run", "write one as `patchq cluster logs` names it, or all"
        )

    def one(node: Node, there: Shell) -> RankLog:
        asked = {"rank": node.rank, "pattern": pattern, "lines": lines, "run": run}
        said = errand.run(there, node, "logs.read", asked)
        found = (RunLog(each["run"], tuple(each["lines"]), each["there"]) for each in said["found"])
        return RankLog(node, tuple(said["runs"]), tuple(found), bool(said["cut"]))

    return LogsReport(cluster, on_all(cluster, one))


def follow(
    cluster: Cluster,
    sink: Callable[[Node, Sequence[str]], None],
    *,
    pattern: str | None = None,
    lines: int = 50,
) -> None:
    """Give `sink` the last lines of each rank, and new ones as they come, until interrupted.

    A node that is lost is told as a line of its own, and hides no other. Raises PatchqError once
    all are.
    """
    _check(pattern)
    one_at_a_time = threading.Lock()

    def one(node: Node, there: Shell) -> None:
        left = b""

        def hear(chunk: bytes) -> None:
            nonlocal left
            *whole, left = (left + chunk).split(b"\n")
            if whole:
                with one_at_a_time:
                    sink(node, [line.decode("utf-8", "replace") for line in whole])

        asked = {"rank": node.rank, "pattern": pattern, "lines": lines}
        try:
            there.stream(errand.command(node, "logs.follow", asked), hear)
        except PatchqError as problem:
            with one_at_a_time:
                sink(node, [problem.message])
            raise

    with Reach(cluster) as reach:
        answers = reach.each(one)
    for answer in answers:
        if isinstance(answer, PatchqError):
            raise answer


def _check(pattern: str | None) -> None:
    try:
        re.compile(pattern or "")
    except re.error as error:
        raise UsageError(
            f"{pattern!r} is no regular expression: {error}", "correct it; `\\` escapes"
        ) from error
