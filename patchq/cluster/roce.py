"""Which RDMA adapter and which of its GIDs a node's address means.

The table moves with the addresses of the interface, per node and per adapter, so it is looked up
at every start. NCCL (NCCL_IB_GID_INDEX) takes an index; where that entry is empty or another's, the
queue pairs do not come up (ibv_modify_qp, errno 61), about a minute into the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from patchq.cluster.config import Node
from patchq.cluster.facts import ROCE2, Adapter, Gid

_FAILS = "NCCL fails a minute into the start: ibv_modify_qp, errno 61"


@dataclass(frozen=True)
class Fault:
    """Why RoCE will not work there: a sentence, a reason, what to do."""

    says: str
    reason: str
    remedy: str


def chosen(node: Node, adapters: Sequence[Adapter]) -> tuple[Adapter, Gid] | Fault:
    """The adapter behind the node's interface, and the RoCE v2 GID of the node's address."""
    if not adapters:
        return Fault(
            f"{node.name} has no RDMA adapter behind {node.device}",
            "the ranks talk by RoCE",
            'name the interface of the cable (`rdma link`), or set transport = "tcp"',
        )
    active = [adapter for adapter in adapters if adapter.active]
    if not active:
        states = ", ".join(f"{each.name} is {each.state or 'in no state'}" for each in adapters)
        return Fault(
            f"no RDMA port behind {node.device} of {node.name} is up: {states}",
            "the ranks talk by RoCE",
            "see to the cable and to the other end; of several interfaces, name the one in use",
        )
    if node.gid_index is not None:
        return _fixed(node, node.gid_index, active[0])
    for adapter in active:
        if gid := adapter.gid(node.address):
            return adapter, gid
    kinds = {gid.kind for adapter in active for gid in adapter.gids if gid.names(node.address)}
    return Fault(
        f"{active[0].name} of {node.name} has no {ROCE2} GID for {node.address}"
        + (f", but one of {', '.join(sorted(kinds))}" if kinds else ""),
        _FAILS,
        f"give {node.device} that address (`ip address show {node.device}`), or correct `address`",
    )


def _fixed(node: Node, index: int, adapter: Adapter) -> tuple[Adapter, Gid] | Fault:
    gid = next((each for each in adapter.gids if each.index == index), None)
    if gid is not None and gid.kind == ROCE2 and gid.names(node.address):
        return adapter, gid
    is_what = "empty" if gid is None else f"{gid.text} ({gid.kind or 'not in use'})"
    right = adapter.gid(node.address)
    return Fault(
        f"GID {index} of {adapter.name} on {node.name} is {is_what}, not {ROCE2} of {node.address}",
        _FAILS,
        "leave gid_index out of the cluster's file: it is looked up at every start"
        + (f" (now it is {right.index})" if right else ""),
    )
