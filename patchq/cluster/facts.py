"""What is asked of a node, and what it answers: one program, one round trip."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Any, TypeVar

from patchq.cluster import errand, probe
from patchq.cluster.config import Cluster, Node
from patchq.cluster.shell import Shell

ROCE2 = "RoCE v2"
T = TypeVar("T")
_TAIL = """
import json, sys
print(sys.argv[2] + json.dumps(answer(json.loads(sys.argv[1]))))
"""


@dataclass(frozen=True)
class File:
    """A file there: `name` relative to what was asked for; what `digest` covers says
    `probe.content`."""

    name: str
    size: int
    digest: str


@dataclass(frozen=True)
class Memory:
    """In bytes."""

    total: int
    free: int
    available: int
    swap: int


@dataclass(frozen=True)
class Gpu:
    """`cuda`: the newest CUDA that the driver takes. `devices`: (name, compute capability)."""

    cuda: str
    devices: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Link:
    """`state` is "up" where it is; `speed` in Mbit/s."""

    state: str
    mtu: int
    speed: int | None
    addresses: tuple[str, ...]


@dataclass(frozen=True)
class Gid:
    """An entry of an adapter's table: `kind` "RoCE v2" or "IB/RoCE v1", "" for one not in use."""

    index: int
    text: str
    kind: str

    def names(self, address: str) -> bool:
        """Whether it is the GID of the IP address: itself, or `::ffff:` before an IPv4 one."""
        try:
            gid = IPv6Address(self.text)
        except ValueError:
            return False
        wanted = ip_address(address)
        return gid == wanted or gid.ipv4_mapped == wanted


@dataclass(frozen=True)
class Adapter:
    """An RDMA adapter behind the node's interface. `state`: "4: ACTIVE" where its port is up."""

    name: str
    state: str
    gids: tuple[Gid, ...]

    @property
    def active(self) -> bool:
        return self.state.endswith("ACTIVE")

    def gid(self, address: str) -> Gid | None:
        """The RoCE v2 entry of `address`, the first of them."""
        return next((gid for gid in self.gids if gid.kind == ROCE2 and gid.names(address)), None)


@dataclass(frozen=True)
class Facts:
    """What a node says of itself. None: it could not find out, and `failed` may say why.

    `ahead` is by how many seconds its clock is ahead of ours, give or take `doubt`. `ports`: who
    listens there, None where it is free. `files`: by the names that were asked for, None where
    nothing is there.
    """

    machine: str
    home: str
    ahead: float
    doubt: float
    memory: Memory | None = None
    driver: str | None = None
    gpu: Gpu | None = None
    disk: tuple[str, int] | None = None
    ports: Mapping[int, str | None] | None = None
    address: bool | None = None
    link: Link | None = None
    adapters: tuple[Adapter, ...] | None = None
    files: Mapping[str, tuple[File, ...] | None] | None = None
    failed: Mapping[str, str] = field(default_factory=dict)


def ask(
    shell: Shell,
    cluster: Cluster,
    node: Node,
    files: Mapping[str, str] | None = None,
    *,
    full: bool = False,
    root: str = "/",
) -> Facts:
    """Ask `node` by `shell`; `files` by the names that the answer gives them.

    `full` reads them whole, `root` stands for `/` where /proc and /sys are read. Raises Incomplete
    where it is not reached, has no python3, or answers something else.
    """
    question = {
        "root": root,
        "folder": node.folder,
        "ports": [cluster.port, cluster.master_port] if node.rank == 0 else [],
        "address": node.address,
        "device": node.device,
        "files": dict(files or {}),
        "full": full,
    }
    script = Path(probe.__file__).read_bytes() + _TAIL.encode()
    begun = time.time()
    done = shell.run(
        ["python3", "-", json.dumps(question), errand.MARK],
        input=script,
        timeout=None if full else errand.LIMIT,
    )
    ended = time.time()
    try:
        said = errand.marked(done.stdout) or {}
        first, last = said["time"]
        ahead = ((first - begun) + (last - ended)) / 2
        doubt = ((ended - begun) - (last - first)) / 2
        return read(said, ahead, doubt)
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        raise errand.unanswered(node, done) from None


def read(said: dict[str, Any], ahead: float, doubt: float) -> Facts:
    """What the probe says, typed. Raises AttributeError, LookupError, TypeError or ValueError where
    it is something else."""
    return Facts(
        machine=str(said["machine"]),
        home=str(said["home"]),
        ahead=ahead,
        doubt=doubt,
        memory=_unless_none(said["memory"], _memory),
        driver=_unless_none(said["driver"], str),
        gpu=_unless_none(said["gpu"], _gpu),
        disk=_unless_none(said["disk"], lambda disk: (str(disk["folder"]), int(disk["free"]))),
        ports=_unless_none(
            said["ports"],
            lambda ports: {int(port): _unless_none(who, str) for port, who in ports.items()},
        ),
        address=_unless_none(said["address"], bool),
        link=_unless_none(said["link"], _link),
        adapters=_unless_none(said["adapters"], lambda each: tuple(map(_adapter, each))),
        files=_unless_none(
            said["files"],
            lambda files: {str(name): _unless_none(each, _files) for name, each in files.items()},
        ),
        failed={str(name): str(why) for name, why in said["failed"].items()},
    )


def _unless_none(value: Any, make: Callable[[Any], T]) -> T | None:
    return None if value is None else make(value)


def _memory(said: dict[str, Any]) -> Memory:
    names = ("MemTotal", "MemFree", "MemAvailable", "SwapTotal")
    return Memory(*(int(said[name]) for name in names))


def _gpu(said: dict[str, Any]) -> Gpu:
    devices = tuple((str(each["name"]), str(each["capability"])) for each in said["devices"])
    return Gpu(str(said["cuda"]), devices)


def _link(said: dict[str, Any]) -> Link:
    addresses = tuple(map(str, said["addresses"]))
    speed = _unless_none(said["speed"], int)
    return Link(str(said["state"]), int(said["mtu"]), speed, addresses)


def _files(said: list[Any]) -> tuple[File, ...]:
    return tuple(File(str(name), int(size), str(digest)) for name, size, digest in said)


def _adapter(said: dict[str, Any]) -> Adapter:
    gids = tuple(Gid(int(index), str(text), str(kind)) for index, text, kind, _ in said["gids"])
    return Adapter(str(said["name"]), str(said["state"]), gids)
