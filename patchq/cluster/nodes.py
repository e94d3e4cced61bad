"""All nodes of a cluster at once; one that is not reached hides no other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Self, TypeVar

from patchq.cluster.config import Cluster, Node
from patchq.cluster.shell import Shell, local, ssh
from patchq.errors import PatchqError
from patchq.progress import Progress

T = TypeVar("T")


class Reach:
    """The nodes of a cluster, each by one connection, while this is used as a context."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            # Twice as many: after a Ctrl-C what was asked before may still be under way.
            self._pool = ThreadPoolExecutor(2 * len(self.cluster.nodes))
            # Last: connections end before the threads are awaited, so that a Ctrl-C waits for none.
            opened.callback(self._pool.shutdown, cancel_futures=True)
            self._shells = {
                node.name: opened.enter_context(shell(self.cluster, node))
                for node in self.cluster.nodes
            }
            self._stack = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def shell(self, node: Node) -> Shell:
        return self._shells[node.name]

    def each(
        self, do: Callable[[Node, Shell], T], nodes: Iterable[Node] | None = None
    ) -> tuple[T | PatchqError, ...]:
        """What `do` gives for each node, in the order of ranks, or the PatchqError that it raises.

        `nodes`: these alone, in their order.
        """

        def one(node: Node) -> T | PatchqError:
            try:
                return do(node, self.shell(node))
            except PatchqError as problem:
                return problem

        return tuple(self._pool.map(one, self.cluster.nodes if nodes is None else nodes))


def shell(cluster: Cluster, node: Node) -> Shell:
    """Where the node's programs run; it connects at its first use."""
    return ssh(node.ssh, cluster.ssh_config) if node.ssh else local()


def on_all(cluster: Cluster, do: Callable[[Node, Shell], T]) -> tuple[T | PatchqError, ...]:
    """`Reach.each` for one question."""
    with Reach(cluster) as reach:
        return reach.each(do)


def sound(answers: Iterable[T | PatchqError]) -> tuple[T, ...]:
    """The answers, where all nodes gave one. Raises what went wrong, all of it in one."""
    found: list[T] = []
    wrong: list[PatchqError] = []
    for answer in answers:
        if isinstance(answer, PatchqError):
            wrong.append(answer)
        else:
            found.append(answer)
    if len(wrong) > 1:
        raise PatchqError(
            "; ".join(each.message for each in wrong),
            "; ".join(dict.fromkeys(each.hint for each in wrong)),
            exit_code=max(each.exit_code for each in wrong),
        )
    if wrong:
        raise wrong[0]
    return tuple(found)


class Aloud:
    """A progress that several threads may step."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._lock = progress, threading.Lock()

    def step(self, what: str, done: int = 0, total: int | None = None, unit: str = "") -> None:
        with self._lock:
            self._progress.step(what, done, total, unit)
