"""A run on a cluster: two nodes by real ssh servers, the stand-in for vLLM as their ranks."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from patchq.cluster import config, lock
from patchq.cluster.nodes import Reach
from patchq.cluster.ranks import Status
from patchq.smoke.asking import Asking, Setting
from patchq.smoke.client import Client
from patchq.smoke.model import About, Wrong
from patchq.smoke.nodes import Nodes, changed, since
from patchq.smoke.probes import logs, memory
from patchq.smoke.questions import Values
from tests.support.fleet import Fleet, eventually, fleet
from tests.support.inside import Said, call

THOSE = ("ranks", "memory", "logs", "backends")


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Fleet]:
    with fleet(tmp_path) as made:
        made.call("deploy", "two", "--wheel", str(made.wheel()))
        made.call("start", "two")
        try:
            yield made
        finally:
            made.call("stop", "two", code=None)


def smoke(nodes: Fleet, *args: str, code: int | None = 0, only: tuple[str, ...] = THOSE) -> Said:
    named = [word for name in only for word in ("--only", name)]
    return call(nodes.root, "smoke", "--cluster", "two", *named, *args, code=code)


def probes(said: Said) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in said.json["probes"]}


def log(nodes: Fleet, rank: int) -> Path:
    return Path(str(nodes.record(rank)["log"]))


def test_ranks_logs_memory_and_lock_of_a_cluster(nodes: Fleet) -> None:
    """One start, for what does no harm; each fault is taken back."""
    said = smoke(nodes, "--json")
    found = probes(said)
    assert "this will be no evidence: what runs on two was built without a runner" in said.err
    assert {name: each["state"] for name, each in found.items()} == {
        "ranks": "passed",
        "memory": "passed",
        "logs": "passed",
        "backends": "left out",
    }
    assert (said.json["profile"], said.json["runner"]) == ("tiny", None)
    assert [each["node"] for each in found["ranks"]["evidence"]["ranks"]] == ["node-0", "node-1"]
    assert set(found["memory"]["evidence"]["least_gib"]) == {"node-0", "node-1"}

    was = log(nodes, 1).read_bytes()
    bad = "WARNING 11-30 [x.py:1] cutlass kernels are missing, falling back to torch \x1b[2J"
    log(nodes, 1).write_bytes(was + f"{bad}\nINFO all is well\n{bad}\n".encode())
    found = probes(smoke(nodes, "--json", code=5, only=("logs",)))
    assert found["logs"]["says"].startswith("the log of node-1 has a fallback: WARNING 11-30")
    assert found["logs"]["says"].endswith(", and 1 more lines")
    assert found["logs"]["evidence"]["lines"] == {"node-1": [bad, bad]}
    told = smoke(nodes, code=5, only=("logs",))
    assert "\x1b" not in told.out + told.err

    profile = nodes.root / "ci/profiles/tiny.toml"
    plain = profile.read_text(encoding="utf-8")
    profile.write_text(f'{plain}memory = 1e5\n[smoke]\nlog_known = ["cutlass"]\n', encoding="utf-8")
    found = probes(smoke(nodes, "--json", code=5, only=("logs", "memory")))
    assert found["logs"]["state"] == "passed", "the profile says that the line is known"
    assert "GiB to spare; the profile wants 100000" in found["memory"]["says"]

    asking = plain.replace("[flags]\n", '[flags]\nattention-backend = "X"\n')
    profile.write_text(asking, encoding="utf-8")
    found = probes(smoke(nodes, "--json", code=6, only=("backends",)))
    assert "the profile asks for attention-backend, and no log has" in found["backends"]["says"]
    profile.write_text(plain, encoding="utf-8")

    row = "INFO 11-30 22:05:12 [backends_table.py:204] "
    table = f"{row}backend of       requested                in use\n"
    table += f"{row}linear           -                        Unquantized x8\n"
    log(nodes, 1).write_bytes(was)
    log(nodes, 0).write_text(table, encoding="utf-8")
    found = probes(smoke(nodes, "--json", only=("backends",)))
    assert found["backends"]["says"] == "in use: linear Unquantized x8"
    table += f"{row}attention        TRITON_ATTN              CPU_ATTN x2  <- FALLBACK\n"
    log(nodes, 0).write_text(table, encoding="utf-8")
    found = probes(smoke(nodes, "--json", code=5, only=("backends",)))
    assert found["backends"]["says"] == (
        "attention: TRITON_ATTN was requested, in use: CPU_ATTN x2"
    )

    cluster = config.load(nodes.root, "two")
    with Reach(cluster) as reach, lock.held(reach, "smoke two"):
        said = smoke(nodes, code=6)
    assert said.err.startswith("patchq: node-0 is in use: `smoke two` of ")
    said = smoke(nodes, "--profile", "other", code=1)
    assert said.err.startswith("patchq: two serves tiny, not other\n")


def test_a_rank_that_is_frozen_one_that_ended_and_none_at_all(nodes: Fleet) -> None:
    pid = nodes.record(1)["pid"]
    assert isinstance(pid, int)
    os.kill(pid, signal.SIGSTOP)
    found = probes(smoke(nodes, "--json", code=5))
    assert found["ranks"]["says"] == "rank 1 on node-1 is frozen: a signal stopped it"
    assert found["logs"]["says"] == "a rank is gone, see ranks"
    os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: nodes.record(1)["ended"])
    said = smoke(nodes, code=6)
    assert said.err.startswith("patchq: rank 1 on node-1 ended with 137: it was killed")
    nodes.call("stop", "two")
    said = smoke(nodes, code=6)
    assert said.err.startswith("patchq: nothing runs on node-0\n")
    assert "`patchq cluster start two` starts its ranks" in said.err


# --- Pure -----------------------------------------------------------------------------------


def state(**more: Any) -> Status:
    cluster = config.parse(
        {
            "target": "cpu",
            "port": 1024,
            "master_port": 1025,
            "node": [{"name": "n", "rank": 0, "address": "127.0.0.1", "device": "lo"}],
        },
        "c",
        "c.toml",
        Path(),
    )
    guard = {"pid": 7, "began": 9, "boot": "b"}
    rank = {"guard": guard, "ended": None}
    return Status(cluster.nodes[0], None, None, rank, None, **{"alive": True, "starts": 1, **more})


@pytest.mark.parametrize(
    ("now", "says"),
    [
        (state(frozen=True), "is frozen"),
        (replace(state(), rank=None), "was stopped"),
        (state(alive=False), "is gone"),
        (state(starts=2), "was started again"),
        (replace(state(), rank={"guard": {"pid": 8}, "ended": None}), "was started again"),
    ],
)
def test_a_rank_that_is_not_what_it_was(now: Status, says: str) -> None:
    assert changed(state(), state()) is None
    assert (changed(state(), now) or "").startswith(f"rank 0 on n {says}")


BAD = {
    "WARNING: Using fallback to torch linear": "a fallback",
    "attention  TRITON_ATTN  CPU_ATTN x2  <- FALLBACK": "a fallback",
    "(APIServer pid=1) ERROR Traceback (most recent call last):": "an error in the code",
    "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue": "a dead rank",
    "WARNING the KV cache layout of rank 1 differs": "a warning about the cache's layout",
    "ImportError: x.so: undefined symbol: y": "a shared object does not fit its environment",
    "NCCL WARN Call to ibv_modify_qp failed: No data available errno 61": "the GID",
}
GOOD = (
    "INFO [utils.py:347] Using LBHNC KV cache layout.",
    "WARNING [vllm.py:1709] Enforce eager set, disabling torch.compile",
    'INFO:     127.0.0.1:33998 - "POST /v1/chat/completions HTTP/1.1" 400 Bad Request',
)


@pytest.mark.parametrize("line", BAD)
def test_a_line_that_is_a_fault(line: str) -> None:
    assert (logs.meaning(line) or "").startswith(BAD[line])


@pytest.mark.parametrize("line", GOOD)
def test_a_line_that_is_none(line: str) -> None:
    assert logs.meaning(line) is None


def test_the_kernel_s_words_since_the_start() -> None:
    said = "[    1.2] old\n<4>[  90.000001] NVRM: Xid 31\n[91.0] x\nno time\n"
    assert since(said, 90.0) == ["NVRM: Xid 31", "x"]


def test_what_a_kernel_says_of_memory_and_of_the_graphics_processor() -> None:
    for lines, says in (
        (["NVRM: Xid (PCI:0000:01:00): 31, pid=1"], "the kernel of n says 'NVRM: Xid"),
        (["Out of memory: Killed process 7 (vllm)"], "the kernel of n says 'Out of memory"),
        (["NVRM: loading NVIDIA UNIX aarch64 Kernel Module", "eth0: up"], ""),
    ):
        asking = asking_of(kernel=lambda said=lines: {"n": said})
        with pytest.raises(Wrong, match=says) if says else nullcontext():
            assert memory.kernel(asking) == "; the kernels said nothing bad"
    told = memory.kernel(asking_of(kernel=lambda: {"n": None}))
    assert told == "; the kernel's log may not be read on n"


def asking_of(**nodes: Any) -> Asking:
    """Of a run on nodes of which only this is known."""
    client = Client("http://127.0.0.1:9")
    about = About("http://127.0.0.1:9", "m")
    known = cast(Nodes, SimpleNamespace(**nodes))
    return Asking(Setting(client, about, Values(1), nodes=known))
