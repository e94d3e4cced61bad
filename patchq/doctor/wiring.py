"""A node on its network: interface, address, and for RoCE the adapter and its GID."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address

from patchq.cluster.config import Cluster, Node
from patchq.cluster.facts import Facts
from patchq.cluster.roce import Fault, chosen
from patchq.doctor.machine import Finding, unread
from patchq.doctor.model import Check
from patchq.paths import show


def findings(cluster: Cluster, node: Node, found: Facts) -> Iterator[Finding]:
    name = f"{node.name} link"
    if found.link is None:
        if "link" in found.failed:
            yield unread(node, found, "link", f"the interface {node.device}")
        else:
            yield Check(
                name,
                "fatal",
                f"{node.name} has no interface {node.device}",
                "the ranks are told to talk over it",
                f"correct `device` of {cluster.name}: `ip -brief address` there names them",
            )
        return
    if found.link.state not in ("up", "unknown"):
        yield Check(
            name,
            "fatal",
            f"{node.device} of {node.name} is {show(found.link.state or 'in no state')}",
            "the ranks are told to talk over it",
            "see to the cable and to the other end",
        )
    elif node.address not in (there := found.link.addresses) and not _loops(node, found):
        yield Check(
            name,
            "fatal",
            f"{_without_address(node, found)}, which has {', '.join(map(show, there)) or 'none'}",
            "rank 0 is awaited at an address where nobody answers",
            f"correct `address` or `device` of {cluster.name}, or give the interface that address",
        )
    elif cluster.transport == "tcp":
        yield f"{node.address} on {node.device}"
    elif found.adapters is None:
        yield unread(node, found, "adapters", "the RDMA adapters")
    else:
        yield _roce(node, found)


def _loops(node: Node, found: Facts) -> bool:
    """All of 127.0.0.0/8 is the machine's own, though one address is listed."""
    return found.address is True and ip_address(node.address).is_loopback


def _without_address(node: Node, found: Facts) -> str:
    if found.address:
        return f"{node.address} is on another interface of {node.name} than {node.device}"
    return f"{node.address} is no address of {node.device} on {node.name}"


def _roce(node: Node, found: Facts) -> Finding:
    choice = chosen(node, found.adapters or ())
    if isinstance(choice, Fault):
        says, reason, remedy = show(choice.says), choice.reason, choice.remedy
        return Check(f"{node.name} RoCE", "fatal", says, reason, remedy)
    adapter, gid = choice
    speed = f" at {found.link.speed // 1000} Gbit/s" if found.link and found.link.speed else ""
    where = f"{node.address} on {node.device}{speed}"
    return f"{where}, {show(adapter.name)} with GID {gid.index}"
