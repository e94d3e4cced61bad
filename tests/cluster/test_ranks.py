"""Ranks on two nodes, by real ssh: started, watched, stopped, and every way in which that fails.

After each test nothing may be left: no process, no shared memory, no port, no record.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from patchq.cluster import config, lock
from patchq.cluster.nodes import Reach
from tests.support.fleet import Fleet, eventually, fleet, sessions
from tests.support.sshd import Sshd

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with fleet(tmp_path_factory.mktemp("fleet")) as made:
        made.call("deploy", "two", "--wheel", str(made.wheel()))
        yield made


@pytest.fixture
def nodes(deployed: Fleet) -> Iterator[Fleet]:
    deployed.profile()
    yield deployed
    deployed.call("stop", "two", "--patience", "1")
    assert deployed.left() == []
    assert eventually(lambda: free(deployed.port) and free(deployed.master))


def free(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 1):
            return False
    except OSError:
        return True


def states(nodes: Fleet) -> list[str]:
    return [each["state"] for each in nodes.call("status", "two", "--json").json["nodes"]]


@contextmanager
def started(nodes: Fleet, *args: str) -> Iterator[subprocess.Popen[str]]:
    """`patchq cluster ARGS` as a process of its own."""
    command = [sys.executable, "-m", "patchq.cli.main", "cluster", *args]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=nodes.root, env=environment, stdout=pipe, stderr=pipe, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def flow(said: str) -> str:
    """Without the line breaks that a narrow terminal makes."""
    return " ".join(said.split())


def test_from_the_start_to_the_stop(nodes: Fleet) -> None:
    report = nodes.call("start", "two", "--json").json
    assert report["url"] == f"http://127.0.0.1:{nodes.port}"
    assert [each["state"] for each in report["ranks"]] == ["running", "running"]
    assert [each["health"] for each in report["ranks"]] == [200, None]
    said = flow(nodes.call("status", "two").out)
    assert "rank 0 runs since" in said and "health 200, 1 running, 0 waiting, 30 tokens" in said
    first, second = nodes.call("status", "two", "--json").json["nodes"]
    assert first["progress"]["generation_tokens"] == 30
    assert first["run"]["about"]["served_name"] == "tiny"
    assert first["run"]["since"] >= second["run"]["since"], "the headless rank is first"
    again = nodes.call("start", "two", code=1)
    assert "rank 0 runs on node-0 since" in again.err and "started by" in again.err
    stopped = nodes.call("stop", "two", "--json").json["nodes"]
    assert [(each["ran"], each["killed"], each["left"]) for each in stopped] == 2 * [(True, 0, [])]
    assert nodes.left() == []
    assert "node-0: nothing ran" in nodes.call("stop", "two").out


def test_a_rank_that_dies_at_its_start(nodes: Fleet) -> None:
    says = "misc/ibvwrap.cc: ibv_modify_qp failed with 61 No data available, errno 61"
    nodes.profile(FAULT="exit", FAULT_RANK="1", FAULT_SAYS=says)
    said = nodes.call("start", "two", code=6)
    assert "rank 1 on node-1 ended with 3: the GID that NCCL took is empty" in said.out
    assert "-> leave gid_index out" in said.out
    assert f"| {says}" in said.out
    assert "nothing of it runs any more" in said.out
    assert nodes.left() == []
    report = nodes.call("start", "two", "--json", code=6).json
    assert report["failure"]["node"] == "node-1" and says in report["failure"]["lines"]
    assert report["url"] is None and report["left"] == []


def test_a_start_that_takes_too_long(nodes: Fleet) -> None:
    nodes.profile(ready=1, FAULT="silent")
    said = nodes.call("start", "two", code=6)
    assert "tiny did not serve within 1 s" in said.out
    assert nodes.left() == []


def test_a_rank_that_is_killed_later(nodes: Fleet) -> None:
    """Its guard says how it ended and cleans up after it, with nobody connected."""
    nodes.call("start", "two")
    os.kill(int(str(nodes.record(1)["pid"])), signal.SIGKILL)
    assert eventually(lambda: not nodes.pids(1) and not nodes.pids(0))
    assert not nodes.shared()
    assert states(nodes) == ["ended", "ended"]
    said = flow(nodes.call("status", "two").out)
    assert "node-1: rank 1 ended with 137" in said and "node-0: rank 0 ended with 1 " in said
    assert "Connection closed by peer" in nodes.call("logs", "two", "--grep", "closed").out


def test_a_frozen_rank(nodes: Fleet) -> None:
    nodes.call("start", "two")
    for pid in nodes.pids(1):
        os.kill(pid, signal.SIGSTOP)
    assert states(nodes) == ["running", "frozen"]
    said = flow(nodes.call("stop", "two").out)
    assert "node-1: rank 1 is stopped" in said
    assert nodes.left() == []


def test_a_rank_that_does_not_listen(nodes: Fleet) -> None:
    nodes.profile(FAULT="stubborn")
    nodes.call("start", "two")
    report = nodes.call("stop", "two", "--patience", "0.5", "--json").json["nodes"]
    assert report[0]["killed"] > 0 and report[0]["left"] == []
    assert nodes.left() == []


def test_a_rank_whose_guard_is_killed_with_it(nodes: Fleet) -> None:
    """What the guard would have removed is known from its record."""
    nodes.call("start", "two")
    assert eventually(lambda: nodes.record(0)["shared"])
    for pid in nodes.pids(0):
        os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: not nodes.pids(0))
    assert nodes.shared()
    nodes.call("stop", "two")
    for pid, words in strays(nodes):
        os.kill(pid, signal.SIGKILL)
        assert words.startswith("sleep"), "it left the session, and its guard is dead"


def strays(nodes: Fleet) -> list[tuple[int, str]]:
    from tests.support.fleet import standins

    return list(standins(nodes.homes).items())


def test_a_ctrl_c_while_it_starts(nodes: Fleet) -> None:
    nodes.profile(FAULT="silent")
    with started(nodes, "start", "two") as process:
        assert eventually(lambda: all(alive(nodes, rank) for rank in (0, 1)))
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
    assert nodes.left() == []


def alive(nodes: Fleet, rank: int) -> bool:
    try:
        return "pid" in nodes.record(rank)
    except (OSError, ValueError):
        return False


def test_a_patchq_that_is_killed_while_it_starts(nodes: Fleet) -> None:
    """What it started goes on and is seen; its locks are gone with it."""
    nodes.profile(FAULT="silent")
    with started(nodes, "start", "two") as process:
        assert eventually(lambda: all(alive(nodes, rank) for rank in (0, 1)))
        process.kill()
    assert eventually(
        lambda: all(
            each["lock"] is None for each in nodes.call("status", "two", "--json").json["nodes"]
        )
    )
    assert states(nodes) == ["running", "running"]
    assert "rank 0 is stopped" in nodes.call("stop", "two").out


def test_one_at_a_time(nodes: Fleet) -> None:
    cluster = config.load(nodes.root, "two")
    with Reach(cluster) as reach, lock.held(reach, "smoke two"):
        for command in ("start", "stop"):
            said = nodes.call(command, "two", code=1)
            assert f"node-0 is in use: `smoke two` of {lock.whoami()} since" in said.err
        assert "in use: `smoke two` of" in nodes.call("status", "two").out
    assert "in use" not in nodes.call("status", "two").out


def test_the_lock_goes_with_the_connection(nodes: Fleet) -> None:
    cluster = config.load(nodes.root, "two")
    with Reach(cluster) as reach, lock.held(reach, "smoke two"):
        for server in nodes.servers:
            server.cut()
        assert eventually(lambda: "in use" not in nodes.call("status", "two").out)


def test_a_port_that_is_taken(nodes: Fleet) -> None:
    with socket.create_server(("127.0.0.1", nodes.port)):
        said = nodes.call("start", "two", code=1)
    assert f"port {nodes.port} of node-0 is taken by process {os.getpid()}" in said.err
    assert nodes.left() == []


def test_a_model_that_is_not_there(nodes: Fleet) -> None:
    model = nodes.homes[1] / "models" / "tiny"
    model.rmdir()
    try:
        said = nodes.call("start", "two", code=1)
    finally:
        model.mkdir()
    assert f"node-1 has no {model}" in said.err
    assert nodes.left() == []


def test_a_node_that_is_not_reached(nodes: Fleet) -> None:
    """The other one is stopped; what could not be is stopped once the node is back."""
    nodes.call("start", "two")
    dead = nodes.servers[1]
    dead.cut()
    dead.__exit__()
    try:
        said = flow(nodes.call("stop", "two", code=6).out)
        assert "node-0: rank 0 is stopped" in said
        assert "node-1: node-1 is not reached: " in said and "what runs there runs on" in said
        assert "node-1 is not reached" in nodes.call("start", "two", code=6).err
        assert "node-1 is not reached" in nodes.call("status", "two", code=6).out
        assert nodes.call("logs", "two", code=6).out.count("node-0| ") > 1
    finally:
        dead.__enter__()
    assert "nothing ran" in nodes.call("stop", "two").out


def test_a_host_key_that_changed(nodes: Fleet) -> None:
    nodes.servers[0].know("stranger")
    try:
        for command in ("start", "status", "stop"):
            said = nodes.call(command, "two", code=6)
            assert "node-0 answers with another host key than the known one" in said.err + said.out
    finally:
        nodes.servers[0].know("host")


def test_a_node_that_is_lost_while_it_starts(nodes: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rank that can be stopped is, the other is named."""
    nodes.profile(FAULT="silent")
    lost: list[Sshd] = []

    def lose(seconds: float) -> None:
        if not lost and alive(nodes, 0):
            lost.append(nodes.servers[1])
            nodes.servers[1].cut()
            nodes.servers[1].__exit__()
        real(seconds)

    real = time.sleep
    monkeypatch.setattr("patchq.cluster.start.time.sleep", lose)
    try:
        said = flow(nodes.call("start", "two", code=6).out)
    finally:
        monkeypatch.setattr("patchq.cluster.start.time.sleep", real)
        nodes.servers[1].__enter__()
    assert "node-1 is not reached" in said and "what runs there runs on" in said
    assert "node-0: rank 0 is stopped" in said
    assert states(nodes) == ["stopped", "ended"], "without rank 0 it ended by itself"


def test_logs_are_followed_kept_and_searched(nodes: Fleet) -> None:
    nodes.profile(flags="seed = 4711")
    with started(nodes, "logs", "two", "-f", "--grep", "rank [01] starts .*--seed 4711") as process:
        nodes.call("start", "two")
        assert process.stdout is not None
        heard = sorted(process.stdout.readline()[:21] for _ in range(2))
        assert heard == ["node-0| rank 0 starts", "node-1| rank 1 starts"]
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        assert process.returncode == 130
    nodes.call("stop", "two")
    first, second = nodes.call("logs", "two", "--run", "all", "--grep", "^serves$", "--json").json[
        "nodes"
    ]
    assert first["found"][-1] == {"run": first["runs"][-1], "lines": ["serves"]}
    assert not any(each["lines"] for each in second["found"])
    last = nodes.call("logs", "two", "--lines", "1").out.splitlines()
    assert [line.split("|")[0] for line in last] == ["node-0", "node-1"]
    assert "no regular expression" in nodes.call("logs", "two", "--grep", "(", code=2).err
    assert "is no run" in nodes.call("logs", "two", "--run", "../x", code=2).err


def test_nobody_is_asked_for_nothing(nodes: Fleet) -> None:
    assert "there is no cluster 'three'" in nodes.call("status", "three", code=1).err
    nodes.profile("other")
    try:
        assert "which profile?" in nodes.call("start", "two", code=2).err
    finally:
        (nodes.root / "ci/profiles/other.toml").unlink()
    assert sessions()
