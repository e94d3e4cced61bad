"""The command line and the environment of each rank: a profile on a cluster. Pure.

All ranks get one command line, but for their number; the headless ones start first, rank 0 last,
for it awaits them. (`vllm serve --help=ParallelConfig`; NCCL's environment variables.)
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from patchq.cluster.config import Cluster, Node
from patchq.cluster.facts import Facts
from patchq.cluster.profile import Profile, Value
from patchq.cluster.roce import Fault, chosen
from patchq.errors import PatchqError


@dataclass(frozen=True)
class Place:
    """What was found on a node: the account's home, and for RoCE the adapter and the GID."""

    home: str
    adapter: str | None = None
    gid: int | None = None


@dataclass(frozen=True)
class Launch:
    """How one rank is started: `command` in `folder`, with `environment` beside the account's.

    `needs` are files and folders that must be there.
    """

    node: Node
    folder: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    needs: tuple[str, ...] = ()


def place(cluster: Cluster, node: Node, found: Facts) -> Place:
    """What a start needs of the node's answer. Raises PatchqError where RoCE will not work."""
    if cluster.transport != "roce":
        return Place(found.home)
    choice = chosen(node, found.adapters or ())
    if isinstance(choice, Fault):
        raise PatchqError(choice.says, choice.remedy)
    adapter, gid = choice
    return Place(found.home, adapter.name, gid.index)


def compose(
    profile: Profile,
    cluster: Cluster,
    places: Mapping[str, Place],
    program: str | Mapping[str, str],
) -> tuple[Launch, ...]:
    """All ranks, in the order in which they are started.

    `places` by the nodes' names; `program`: vllm, absolute or below the node's folder, one for all
    or by the nodes' names. Raises
    PatchqError where the ranks do not divide among the nodes, or profile and cluster contradict.
    """
    ranks, count = profile.tensor_parallel * profile.pipeline_parallel, len(cluster.nodes)
    if ranks % count:
        raise PatchqError(
            f"{profile.name} has {ranks} ranks, which do not divide among the {count} nodes of"
            f" {cluster.name}",
            f"make tensor_parallel times pipeline_parallel a multiple of {count}",
        )
    both = profile.environment.keys() & cluster.environment.keys()
    if odd := sorted(key for key in both if profile.environment[key] != cluster.environment[key]):
        raise PatchqError(
            f"{profile.name} and {cluster.name} give {odd[0]} two values",
            "leave it to one of them: to the cluster what concerns its network",
        )
    order = (*cluster.nodes[1:], cluster.nodes[0])
    return tuple(
        _launch(
            profile,
            cluster,
            node,
            places[node.name],
            program if isinstance(program, str) else program[node.name],
        )
        for node in order
    )


def _launch(profile: Profile, cluster: Cluster, node: Node, found: Place, program: str) -> Launch:
    folder = os.path.join(found.home, node.folder)
    runs = os.path.join(folder, program)
    models = os.path.join(found.home, node.models)
    model = os.path.join(models, profile.model)
    draft = os.path.join(models, profile.draft) if profile.draft else None
    name = f"{profile.template}.jinja"
    template = os.path.join(folder, "templates", name) if profile.template else None
    command = [
        *(runs, "serve", model),
        *_served(profile, draft, template),
        *_parallel(profile, cluster, node),
    ]
    for flag, value in profile.flags.items():
        command += _words(flag, value)
    wide = {**cluster.environment, **profile.environment} | _network(cluster, node, found)
    needs = tuple(path for path in (runs, model, draft, template) if path)
    return Launch(node, folder, tuple(command), wide, needs)


def _served(profile: Profile, draft: str | None, template: str | None) -> Iterator[str]:
    yield from ("--served-model-name", profile.served_name)
    if template:
        yield from ("--chat-template", template)
    if profile.speculation:
        drafter = {"model": draft} if draft else {}
        yield from ("--speculative-config", json.dumps({**drafter, **profile.speculation}))


def _parallel(profile: Profile, cluster: Cluster, node: Node) -> Iterator[str]:
    yield from ("--tensor-parallel-size", str(profile.tensor_parallel))
    if profile.pipeline_parallel > 1:
        yield from ("--pipeline-parallel-size", str(profile.pipeline_parallel))
    if len(cluster.nodes) > 1:
        yield from ("--distributed-executor-backend", "mp")
        yield from ("--nnodes", str(len(cluster.nodes)), "--node-rank", str(node.rank))
        yield from ("--master-addr", cluster.nodes[0].address)
        yield from ("--master-port", str(cluster.master_port))
    if node.rank == 0:
        yield from ("--port", str(cluster.port))
    else:
        yield "--headless"


def _words(flag: str, value: Value) -> list[str]:
    match value:
        case True:
            return [f"--{flag}"]
        case False:
            return [f"--no-{flag}"]
        case list():
            return [f"--{flag}", *map(str, value)]
        case dict():
            return [f"--{flag}", json.dumps(value)]
    text = str(value)
    return [f"--{flag}={text}"] if text.startswith("-") else [f"--{flag}", text]


def _network(cluster: Cluster, node: Node, found: Place) -> dict[str, str]:
    if len(cluster.nodes) == 1:
        return {}
    network = {
        "GLOO_SOCKET_IFNAME": node.device,
        "NCCL_SOCKET_IFNAME": node.device,
        "VLLM_HOST_IP": node.address,
    }
    if cluster.transport == "tcp":
        return network | {"NCCL_IB_DISABLE": "1"}
    # `=`: this adapter, not every one whose name begins so.
    return network | {"NCCL_IB_HCA": f"={found.adapter}", "NCCL_IB_GID_INDEX": str(found.gid)}
