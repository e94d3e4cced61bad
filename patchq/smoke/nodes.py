"""The cluster that a run is about: its nodes held, its address, its ranks, logs and memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchq.cluster import errand, lock, ranks
from patchq.cluster import profile as profiles
from patchq.cluster.config import Cluster, Node
from patchq.cluster.nodes import Reach, sound
from patchq.cluster.profile import Profile
from patchq.cluster.ranks import Status
from patchq.cluster.shell import Shell
from patchq.cluster.start import url
from patchq.errors import Incomplete, PatchqError
from patchq.paths import show

_TICKS = 100
"""A second, as /proc/PID/stat counts: USER_HZ, the same on every Linux that vLLM runs on."""
_KERNEL = re.compile(r"^(?:<\d+>)?\[\s*(\d+(?:\.\d+)?)\]\s?(.*)")


@dataclass(frozen=True)
class Nodes:
    """While a run is under way. `url`: rank 0 as this machine reaches it; `started`: its ranks as
    they were found, in their order."""

    reach: Reach
    profile: Profile
    url: str
    started: tuple[Status, ...]

    @property
    def cluster(self) -> Cluster:
        return self.reach.cluster

    def states(self) -> tuple[Status | PatchqError, ...]:
        return self.reach.each(lambda node, there: ranks.ask(there, node, 20))

    def matching(self, pattern: str) -> dict[str, list[str]]:
        """The lines of this run that match, by the nodes' names. Raises PatchqError."""

        def one(node: Node, there: Shell) -> list[str]:
            asked = {"rank": node.rank, "pattern": pattern, "lines": 0, "run": self._run(node)}
            (found,) = errand.run(there, node, "logs.read", asked)["found"]
            return list(found["lines"])

        return self._by_name(sound(self.reach.each(one)))

    def available(self) -> dict[str, int]:
        """Bytes of memory that each node has to spare. Raises PatchqError."""

        def one(node: Node, there: Shell) -> int:
            done = there.run(["cat", "/proc/meminfo"], timeout=errand.LIMIT)
            found = re.search(rb"(?m)^MemAvailable:\s+(\d+) kB", done.stdout)
            if found is None:
                raise Incomplete(f"{node.name} does not say its memory", "see /proc/meminfo there")
            return 1024 * int(found[1])

        return self._by_name(sound(self.reach.each(one)))

    def kernel(self) -> dict[str, list[str] | None]:
        """What each node's kernel has said since the rank was started; None: not for us to read."""

        def one(node: Node, there: Shell) -> list[str] | None:
            done = there.run(["dmesg"], timeout=errand.LIMIT)
            if done.code != 0:
                return None
            rank = self.started[node.rank].rank
            began = rank["guard"]["began"] / _TICKS if rank is not None else 0.0
            return since(done.stdout.decode("utf-8", "replace"), began)

        return self._by_name(sound(self.reach.each(one)))

    def _run(self, node: Node) -> str:
        rank = self.started[node.rank].rank
        assert rank is not None
        return str(rank["run"])

    def _by_name(self, answers: Sequence[Any]) -> dict[str, Any]:
        return {n.name: each for n, each in zip(self.cluster.nodes, answers, strict=True)}


def changed(before: Status, now: Status) -> str | None:
    """What became of a rank that ran: a sentence without a full stop; None where it goes on."""
    where = f"rank {before.node.rank} on {before.node.name}"
    assert before.rank is not None
    if now.rank is None:
        return f"{where} was stopped"
    if not now.alive:
        return ranks.fate(now)
    if now.rank["guard"] != before.rank["guard"] or now.starts != before.starts:
        return f"{where} was started again"
    return f"{where} is frozen: a signal stopped it" if now.frozen else None


def since(said: str, began: float) -> list[str]:
    """The lines of a kernel log (`[seconds since the start] text`) from `began` on."""
    found = (_KERNEL.match(line) for line in said.splitlines())
    return [match[2] for match in found if match is not None and float(match[1]) >= began]


@contextmanager
def at_work(root: Path, cluster: Cluster, profile: str | None, what: str) -> Iterator[Nodes]:
    """Hold the nodes for `what` (as `smoke sparks`) and say where they serve.

    `profile`: its name; None for the one that runs. Raises Incomplete where somebody else is at
    work there, a node is not reached, or nothing runs; PatchqError where another profile does.
    """
    with Reach(cluster) as reach, _held(reach, what):
        states = sound(reach.each(lambda node, there: ranks.ask(there, node, 20)))
        running = _running(cluster, states, profile)
        rank = states[0].rank
        assert rank is not None
        # By the node's own connection, also where something answers here: the addresses of a cable
        # between two nodes are private, and elsewhere they are others'.
        first = reach.shell(cluster.nodes[0])
        host, port = first.forward(str(rank["host"]), int(rank["port"]))
        yield Nodes(reach, profiles.load(root, running), url(host, port), states)


@contextmanager
def _held(reach: Reach, what: str) -> Iterator[None]:
    with ExitStack() as stack:
        try:
            stack.enter_context(lock.held(reach, what))
        except lock.Busy as busy:
            raise Incomplete(busy.message, busy.hint) from None
        yield


def _running(cluster: Cluster, states: Sequence[Status], profile: str | None) -> str:
    """The name of the profile that all ranks serve."""
    for state in states:
        if state.rank is None:
            raise Incomplete(
                f"nothing runs on {state.node.name}",
                f"`patchq cluster start {cluster.name}` starts its ranks",
            )
    if dead := [state for state in states if not state.alive]:
        raise Incomplete(
            ranks.fate(ranks.blamed(dead)), f"see `patchq cluster logs {cluster.name}`"
        )
    found = {str(state.rank["about"].get("profile")) for state in states if state.rank is not None}
    if len(found) != 1 or (profile is not None and found != {profile}):
        raise PatchqError(
            f"{cluster.name} serves {show(', '.join(sorted(found)))}"
            + (f", not {profile}" if profile else ""),
            "name that profile, or start the other",
        )
    return found.pop()
