"""One at a time on a cluster: a lock on every node, which names its holder."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import Any

from patchq.cluster import errand
from patchq.cluster.config import Node
from patchq.cluster.nodes import Reach
from patchq.cluster.process import Held
from patchq.cluster.trouble import Unreachable
from patchq.errors import Incomplete, PatchqError
from patchq.paths import show

WAIT = 60.0
"""Seconds in which a node answers whether the lock is ours."""


def whoami() -> str:
    """For messages to others: the account and the machine."""
    try:
        account = getpass.getuser()
    except (KeyError, OSError):
        account = str(os.getuid())
    return f"{account}@{socket.gethostname()}"


@contextmanager
def held(reach: Reach, what: str, *, partly: bool = False) -> Iterator[dict[str, Unreachable]]:
    """Hold the locks of all nodes, in the order of ranks. It ends with this process at the latest.

    `what` says what for, as `cluster start sparks`. `partly`: go on where a node is not reached,
    which is what is given, by the nodes' names. Raises PatchqError where somebody else has one.
    """
    missed: dict[str, Unreachable] = {}
    with ExitStack() as stack:
        for node in reach.cluster.nodes:
            try:
                lock = _take(reach, node, what)
            except Unreachable as problem:
                if not partly:
                    raise
                missed[node.name] = problem
            else:
                stack.callback(lock.end)
        yield missed


def _take(reach: Reach, node: Node, what: str) -> Held:
    asked = {"mark": errand.MARK, "holder": {"who": whoami(), "what": what}}
    shell = reach.shell(node)
    # The connection first, for its trouble is told better by itself.
    errand.run(shell, node, "files.home", {})
    lock = shell.hold(errand.command(node, "lock.hold", asked))
    try:
        lock.says(b"}\n", WAIT)
        found = errand.marked(lock.heard) or {}
        if "errno" in found:
            raise errand.refused(node, found)
        said = found.get("said") or {}
        if said.get("held") is True:
            return lock
        if "by" in said:
            raise _busy(node, said["by"])
        raise Incomplete(
            f"{node.name} did not say whether its lock is free",
            "see that python3 runs there, then run it again",
        )
    except BaseException:
        lock.end()
        raise


class Busy(PatchqError):
    """Somebody else is at work on a node."""


def _busy(node: Node, by: dict[str, Any]) -> Busy:
    if not by:
        return Busy(f"{node.name} is in use by somebody", "wait until that is done")
    return Busy(
        f"{node.name} is in use: {told(by)}",
        "wait until that is done; a connection that broke unnoticed ends with process"
        f" {by.get('pid')} there",
    )


def told(by: Mapping[str, Any]) -> str:
    """Who has a lock, what for, since when."""
    since = when(by.get("since"))
    return f"`{show(str(by.get('what')))}` of {show(str(by.get('who')))} since {since}"


def when(stamp: Any) -> str:
    """A time of a node, in UTC."""
    try:
        return datetime.fromtimestamp(float(stamp), UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (TypeError, ValueError, OverflowError, OSError):
        return "an unknown time"
