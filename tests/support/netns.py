"""Two machines on one: network namespaces joined by a cable (a veth pair). Needs root.

Each node has a loopback of its own, an address on the cable, and nothing else: no route leaves.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

_NEW_NETWORK = 0x40000000
"""CLONE_NEWNET of <linux/sched.h>."""
_numbers = count()


@dataclass(frozen=True)
class Node:
    namespace: str
    address: str
    device: str
    """The cable's end."""

    def command(self, *args: str) -> list[str]:
        """The command line that runs `args` on this node."""
        return ["ip", "netns", "exec", self.namespace, *args]

    @contextmanager
    def entered(self) -> Iterator[None]:
        """This thread is on the node: sockets that it opens belong there, and stay so."""
        with _opened(Path("/proc/thread-self/ns/net")) as here:
            with _opened(Path("/run/netns") / self.namespace) as there:
                _set(there)
            try:
                yield
            finally:
                _set(here)


@contextmanager
def two_nodes() -> Iterator[tuple[Node, Node]]:
    """Joined, up, and gone at the end."""
    pair = f"patchq-{os.getpid()}-{next(_numbers)}"
    one = Node(f"{pair}-a", "10.77.0.1", "cable")
    other = Node(f"{pair}-b", "10.77.0.2", "cable")
    with ExitStack() as made:
        for node in (one, other):
            _ip("netns", "add", node.namespace)
            made.callback(_ip, "netns", "delete", node.namespace)
        ends = (one.device, "type", "veth", "peer", other.device, "netns", other.namespace)
        _ip("-n", one.namespace, "link", "add", *ends)
        for node in (one, other):
            where = ("-n", node.namespace)
            _ip(*where, "address", "add", f"{node.address}/30", "dev", node.device)
            for device in ("lo", node.device):
                _ip(*where, "link", "set", device, "up")
        yield one, other


def _ip(*args: str) -> None:
    done = subprocess.run(["ip", *args], capture_output=True, text=True)
    assert done.returncode == 0, f"ip {' '.join(args)}: {done.stderr}"


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _set(descriptor: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.setns(descriptor, _NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "setns")
