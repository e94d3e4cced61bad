"""A real `vllm serve` on two nodes (tests/support/netns.py), launched as two Sparks are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

from tests.support.netns import Node, two_nodes
from tests.support.runner import Runner
from tests.support.runner_server import Process, Server, command, started, wait

_PORT = 8000
"""Nobody else is on the nodes."""


@contextmanager
def serving_on_two(
    runner: Runner,
    models: Sequence[Path],
    folder: Path,
    *flags: str,
    env: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """A server with two tensor-parallel ranks, one on each node; `models` is what each node has.

    Its logs are in `folder`/0 and `folder`/1. With `env` both start as everybody starts them, else
    a Python that is kept forks them. Raises StartFailed with the first rank's log.
    """
    with two_nodes() as nodes:

        def on(rank: int) -> AbstractContextManager[tuple[Process, Path]]:
            engine, node = replace(runner, model=models[rank]), nodes[rank]
            words = command(engine, *_flags(rank, nodes), *flags, port=_PORT)
            place = folder / str(rank)
            return started(words, engine, place, _env(node, env), kept=not env, node=node)

        # The one without an API first: it waits for the other.
        with on(1) as (peer, _), on(0) as (first, log):
            server = Server(f"http://127.0.0.1:{_PORT}", log, first, nodes[0])
            wait(server, peer)
            yield server
            peer.terminate()  # both at once: each takes its time to go


def _flags(rank: int, nodes: Sequence[Node]) -> list[str]:
    found = ["--tensor-parallel-size", str(len(nodes)), "--nnodes", str(len(nodes))]
    found += ["--node-rank", str(rank), "--master-addr", nodes[0].address]
    found += ["--master-port", "29555", "--distributed-executor-backend", "mp"]
    return [*found, "--headless"] if rank else found


def _env(node: Node, more: Mapping[str, str] | None) -> dict[str, str]:
    return {"VLLM_HOST_IP": node.address, "GLOO_SOCKET_IFNAME": node.device, **(more or {})}
