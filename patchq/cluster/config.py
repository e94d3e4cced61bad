"""`ci/clusters/NAME.toml`: where a runner runs. Written by hand, never part of a release.

target = "spark"          what is built for it (`patchq build --target`)
port = 8888               where rank 0 serves
master_port = 29521       where rank 0 awaits the other ranks
transport = "roce"        how ranks talk: roce or tcp
ssh_config = "FILE"       beside this file, in the place of the user's own ssh configuration
[needs]                   GiB on each node: memory (available), swap, disk (free)
[environment]             what every rank gets, beyond what patchq finds out for each
[[node]]                  name, rank, ssh (left out: this machine), address, device,
                          gid_index (left out: looked up), folder, models,
                          python (of an environment that is there; left out: one is made)
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from patchq.cluster import table
from patchq.cluster.shell import TARGET
from patchq.cluster.table import NAME, Table, environment
from patchq.errors import PatchqError

Kind = Literal["artifact", "model", "draft", "template"]
_DEVICE = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.@-]{1,15}")
_KEYS = ("target", "port", "master_port", "transport", "ssh_config", "needs", "environment", "node")
_NEEDS = ("memory", "swap", "disk")
_NODE = ("name", "rank", "ssh", "address", "device", "gid_index", "folder", "models", "python")


@dataclass(frozen=True)
class Needs:
    """GiB that each node must have: memory and disk to spare, swap in all."""

    memory: float = 0
    swap: float = 0
    disk: float = 0


@dataclass(frozen=True)
class Node:
    """One machine. `folder` (patchq's own), `models` and `python` are paths there, absolute or
    below the account's home; `address` is the one that the other ranks reach, on the interface
    `device`."""

    name: str
    rank: int
    address: str
    device: str
    folder: str = "patchq"
    models: str = "models"
    ssh: str | None = None
    gid_index: int | None = None
    python: str | None = None

    def place(self, kind: Kind, here: Path) -> str:
        """Where the node has what is `here` on this machine; this machine has it there."""
        path = Path(os.path.abspath(here))
        if self.ssh is None:
            return str(path)
        folder = self.models if kind in ("model", "draft") else f"{self.folder}/{kind}s"
        return f"{folder}/{path.name}"


@dataclass(frozen=True)
class Cluster:
    """The nodes stand in the order of their ranks, 0 first."""

    name: str
    target: str
    nodes: tuple[Node, ...]
    port: int
    master_port: int
    transport: Literal["roce", "tcp"] = "tcp"
    needs: Needs = Needs()
    environment: Mapping[str, str] = field(default_factory=dict)
    ssh_config: Path | None = None


def names(root: Path) -> list[str]:
    """The clusters of the project in the folder `root`, sorted."""
    return table.names(root, "cluster")


def load(root: Path, name: str) -> Cluster:
    """The cluster `name` of the project in the folder `root`.

    Raises PatchqError where there is none, or its file is malformed.
    """
    data, where = table.read(root, "cluster", name)
    return parse(data, name, where, (root / where).parent)


def parse(data: Mapping[str, Any], name: str, where: str, folder: Path) -> Cluster:
    """What a cluster's file says; `folder` holds it. Raises PatchqError."""
    file = Table(data, where, _KEYS)
    transport = file.text("transport", "tcp")
    if transport not in ("roce", "tcp"):
        raise file.wrong(f"transport = {transport!r} is none", 'write "roce" or "tcp"')
    config = file.text("ssh_config", "")
    cluster = Cluster(
        name=name,
        target=file.text("target"),
        nodes=_nodes(data.get("node"), file),
        port=file.whole("port", 1, 65535),
        master_port=file.whole("master_port", 1, 65535),
        transport="roce" if transport == "roce" else "tcp",
        needs=_needs(data.get("needs", {}), where),
        environment=environment(data.get("environment", {}), where),
        ssh_config=folder / config if config else None,
    )
    if cluster.port == cluster.master_port:
        raise file.wrong("port and master_port are one", "give each a number of its own")
    return cluster


def _nodes(entries: Any, file: Table) -> tuple[Node, ...]:
    if not isinstance(entries, list) or not entries:
        raise file.wrong("it has no node", "write [[node]] for each machine")
    nodes = [_node(entry, file.where, place) for place, entry in enumerate(entries, 1)]
    nodes.sort(key=lambda node: node.rank)
    if [node.rank for node in nodes] != list(range(len(nodes))):
        raise file.wrong(
            f"the ranks are {', '.join(str(node.rank) for node in nodes)}",
            f"number the nodes from 0 to {len(nodes) - 1}, each once",
        )
    for what in ("name", "address"):
        values = [getattr(node, what) for node in nodes]
        if twice := [each for each in values if values.count(each) > 1]:
            raise file.wrong(f"two nodes have the {what} {twice[0]}", "give each its own")
    return tuple(nodes)


def _node(entry: Any, where: str, place: int) -> Node:
    if not isinstance(entry, dict):
        raise PatchqError(f"{where}: node is no list of tables", "write [[node]]")
    fields = Table(entry, f"{where}, node {entry.get('name', place)!r}", _NODE)
    name, ssh = fields.text("name"), fields.text("ssh", "")
    if not NAME.fullmatch(name):
        raise fields.wrong("that is no name", "use small letters, digits and dashes")
    if ssh and not TARGET.fullmatch(ssh):
        raise fields.wrong(
            f"ssh = {ssh!r} is no ssh target", "write HOST or USER@HOST, the rest in ssh's settings"
        )
    return Node(
        name=name,
        rank=fields.whole("rank", 0, 1023),
        address=_address(fields),
        device=_matching(
            fields, "device", _DEVICE, "name the network interface, as `ip link` does"
        ),
        folder=_path(fields, "folder", "patchq"),
        models=_path(fields, "models", "models"),
        ssh=ssh or None,
        gid_index=fields.whole("gid_index", 0, 1023) if "gid_index" in entry else None,
        python=_path(fields, "python", "") if "python" in entry else None,
    )


def _address(fields: Table) -> str:
    text = fields.text("address")
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        address = None
    if address is None or address.is_unspecified or address.is_multicast or "%" in text:
        raise fields.wrong(f"address = {text!r} is none", "write the node's own IP address")
    return str(address)


def _matching(fields: Table, key: str, form: re.Pattern[str], hint: str) -> str:
    text = fields.text(key)
    if not form.fullmatch(text):
        raise fields.wrong(f"{key} = {text!r} is none", hint)
    return text


def _path(fields: Table, key: str, default: str) -> str:
    text = fields.text(key, default)
    parts = text.split("/")
    if not text.strip("/") or ".." in parts or text[0] in "~-" or not text.isprintable():
        raise fields.wrong(
            f"{key} = {text!r} is no folder there",
            "write an absolute path, or one below the account's home, without `..` and `~`",
        )
    return text.rstrip("/")


def _needs(entry: Any, where: str) -> Needs:
    fields = Table(entry, f"{where}, needs", _NEEDS)
    for key, value in fields.data.items():
        if type(value) not in (int, float) or not 0 <= value < 1e6:
            raise fields.wrong(f"{key} = {value!r} is no number of GiB", "write, say, 110")
    return Needs(**fields.data)
