"""What each rank is started with: the shipped profile on the shipped cluster, word for word, and
what vLLM's own parser makes of it."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from patchq.cluster.config import Cluster, Node, load
from patchq.cluster.facts import Adapter, Facts, Gid
from patchq.cluster.launch import Launch, Place, compose, place
from patchq.cluster.profile import Profile
from patchq.cluster.profile import load as load_profile
from patchq.errors import PatchqError
from tests.support import sysfs

ROOT = Path(__file__).resolve().parents[2]
SPARKS, GLM = load(ROOT, "sparks"), load_profile(ROOT, "glm-5.3-flash")
PLACES = {
    "spark-a": Place("/home/me", "rocep1s0f0", 3),
    "spark-b": Place("/home/me", "rocep1s0f0", 5),
}
PROGRAM = "environment/bin/vllm"

# The launch that is known to serve from two network namespaces of one machine, by hand.
BY_HAND = (
    "vllm serve /models/tiny --served-model-name tiny --tensor-parallel-size 2"
    " --distributed-executor-backend mp --nnodes 2 --node-rank {rank} --master-addr 10.77.0.1"
    " --master-port 29555 {part} --max-model-len 1024 --enforce-eager"
)


def netns() -> Cluster:
    nodes = tuple(
        Node(
            f"ns{rank}",
            rank,
            f"10.77.0.{rank + 1}",
            f"veth{rank}",
            "/patchq",
            "/models",
            f"ns{rank}",
        )
        for rank in (0, 1)
    )
    return Cluster("netns", "cpu", nodes, 8000, 29555)


def tiny(**more: object) -> Profile:
    flags = {"max-model-len": 1024, "enforce-eager": True}
    return Profile("tiny", "tiny", "tiny", tensor_parallel=2, flags=flags, **more)  # type: ignore[arg-type]


def test_two_namespaces_start_as_by_hand() -> None:
    environment = {"OMP_NUM_THREADS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
    places = {"ns0": Place("/root"), "ns1": Place("/root")}
    follower, leader = compose(tiny(environment=environment), netns(), places, "/env/bin/vllm")
    for launch, rank, part in ((follower, 1, "--headless"), (leader, 0, "--port 8000")):
        words = BY_HAND.format(rank=rank, part=part).split()
        assert launch.command == ("/env/bin/vllm", *words[1:])
        assert launch.folder == "/patchq"
        assert launch.environment == environment | {
            "GLOO_SOCKET_IFNAME": f"veth{rank}",
            "NCCL_SOCKET_IFNAME": f"veth{rank}",
            "NCCL_IB_DISABLE": "1",
            "VLLM_HOST_IP": f"10.77.0.{rank + 1}",
        }


def sparks() -> tuple[Launch, Launch]:
    follower, leader = compose(GLM, SPARKS, PLACES, PROGRAM)
    return follower, leader


def test_the_headless_rank_starts_first() -> None:
    assert [launch.node.name for launch in sparks()] == ["spark-b", "spark-a"]
    assert ["--headless" in launch.command for launch in sparks()] == [True, False]


def test_ranks_differ_in_their_part_alone() -> None:
    follower, leader = (list(launch.command) for launch in sparks())
    follower.remove("--headless")
    place_of_port = leader.index("--port")
    assert leader[place_of_port : place_of_port + 2] == ["--port", "8888"]
    del leader[place_of_port : place_of_port + 2]
    rank = leader.index("--node-rank") + 1
    assert (leader[rank], follower[rank]) == ("0", "1")
    leader[rank] = follower[rank]
    assert leader == follower


def test_paths_are_the_nodes_own() -> None:
    command = sparks()[1].command
    assert command[:3] == (
        "/home/me/patchq/environment/bin/vllm",
        "serve",
        "/home/me/models/glm-5.3-flash-exl3",
    )
    template = command[command.index("--chat-template") + 1]
    assert template == "/home/me/patchq/templates/glm-5.3-flash-chat.jinja"
    speculation = json.loads(command[command.index("--speculative-config") + 1])
    assert speculation["model"] == "/home/me/models/glm-5.3-flash-dflash2"
    assert speculation["num_speculative_tokens"] == 7


def test_each_node_has_its_own_gid_index() -> None:
    follower, leader = (launch.environment for launch in sparks())
    assert (leader["NCCL_IB_GID_INDEX"], follower["NCCL_IB_GID_INDEX"]) == ("3", "5")
    assert leader["NCCL_IB_HCA"] == "=rocep1s0f0"
    assert leader["NCCL_NET"] == "IB"
    assert leader["HF_HUB_OFFLINE"] == "1"
    assert "NCCL_IB_DISABLE" in SPARKS.environment and leader["NCCL_IB_DISABLE"] == "0"


def test_flags_of_every_kind() -> None:
    flags = {
        "on": True,
        "off": False,
        "many": [1, "b"],
        "deep": {"a": [1]},
        "low": -1,
        "share": 0.5,
    }
    (one,) = compose(
        Profile("p", "m", "m", flags=flags), load(ROOT, "local"), {"here": Place("/h")}, "vllm"
    )
    words = [
        "--on",
        "--no-off",
        "--many",
        "1",
        "b",
        "--deep",
        '{"a": [1]}',
        "--low=-1",
        "--share",
        "0.5",
    ]
    assert list(one.command[-10:]) == words
    assert one.environment == {}
    assert "--nnodes" not in one.command and "--headless" not in one.command


def test_ranks_that_do_not_divide() -> None:
    with pytest.raises(PatchqError, match=r"3 ranks, which do not divide among the 2 nodes"):
        compose(replace(GLM, tensor_parallel=3), SPARKS, PLACES, PROGRAM)


def test_a_variable_with_two_values() -> None:
    contrary = replace(GLM, environment={"NCCL_NET": "Socket"})
    with pytest.raises(PatchqError, match="give NCCL_NET two values"):
        compose(contrary, SPARKS, PLACES, PROGRAM)


def found(gids: dict[int, tuple[str, str]]) -> Facts:
    entries = tuple(Gid(index, text, kind) for index, (text, kind) in gids.items())
    adapter = Adapter("rocep1s0f0", "4: ACTIVE", entries)
    return Facts("aarch64", "/home/me", 0.0, 0.0, adapters=(adapter,))


def test_the_index_is_looked_up_when_it_starts() -> None:
    node = SPARKS.nodes[0]
    assert place(SPARKS, node, found(sysfs.table(node.address))) == PLACES["spark-a"]
    with pytest.raises(PatchqError, match=r"has no RoCE v2 GID for 192\.168\.100\.10"):
        place(SPARKS, node, found({}))
    assert place(netns(), netns().nodes[0], found({})) == Place("/home/me")


PARSE = """
import json, sys
from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.utils.argparse_utils import FlexibleArgumentParser
names = ("nnodes", "node_rank", "tensor_parallel_size", "headless", "cudagraph_capture_sizes")
for words in json.loads(sys.argv[1]):
    told = vars(make_arg_parser(FlexibleArgumentParser()).parse_args(words))
    print("told", json.dumps({name: told[name] for name in names}))
"""


@pytest.mark.runner
@pytest.mark.network
@pytest.mark.slow
@pytest.mark.xdist_group("runner-0.32.0")
def test_the_patched_vllm_reads_the_command_line() -> None:
    """Every flag of the shipped profile, the guards of the series included."""
    from tests.support.runner import patched

    runner = patched("0.32.0")
    done = subprocess.run(
        [runner.python, "-c", PARSE, json.dumps([launch.command[2:] for launch in sparks()])],
        env={**os.environ, "PYTHONPATH": str(runner.overlay), "VLLM_NO_USAGE_STATS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    told = [json.loads(line[5:]) for line in done.stdout.splitlines() if line.startswith("told ")]
    assert told == [
        {
            "nnodes": 2,
            "node_rank": rank,
            "tensor_parallel_size": 2,
            "headless": rank > 0,
            "cudagraph_capture_sizes": [1, 2, 4, 8, 16, 24, 32],
        }
        for rank in (1, 0)
    ]
