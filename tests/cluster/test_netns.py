"""Two nodes that are machines of their own but for the disk: network namespaces, each reached by a
real ssh server inside it. At the end real vLLM on both: deployed, served, smoked, broken, stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from patchq.cluster.there import procs
from patchq.smoke import evidence
from patchq.smoke.catalog import PROBES
from tests.scenarios.conftest import cache as cache
from tests.support import answering, runner
from tests.support.fleet import Fleet, eventually, fleet
from tests.support.inside import Said, call
from tests.support.netns import Node, two_nodes
from tests.support.real_fleet import BASE, prepare
from tests.support.vllm import Repository, shipped

pytestmark = pytest.mark.root
RULES = """
cluster = "netns"
profile = "real"
days = 1
[smoke]
left_out = ["image", "speculation"]
"""
LEFT_OUT = {"image", "speculation"}
"""The tiny model sees nothing, and the profile does not draft."""


@pytest.fixture(scope="module")
def places() -> Iterator[tuple[Node, Node]]:
    with two_nodes() as nodes:
        yield nodes


@pytest.mark.runner
@pytest.mark.network
@pytest.mark.slow
@pytest.mark.xdist_group("two-nodes")
@pytest.mark.timeout(1800)
def test_the_shipped_series_is_built_deployed_served_smoked_and_stopped(
    tmp_path: Path, cache: Path, places: tuple[Node, Node]
) -> None:
    engine = runner.stock(BASE)
    model = answering.models(engine.python).answers
    queue = shipped(tmp_path / "queue", cache)
    with fleet(tmp_path, places, queue.root) as nodes:
        prepare(nodes, engine, model)
        queue.patchq("lock", codes=(0, 5))
        queue.patchq("build", "--target", "cpu")
        deployed = nodes.call("deploy", "netns", "--json").json
        tree = queue.patchq("tree").strip()
        assert deployed["labels"]["tree"] == tree
        for rank, node in enumerate(deployed["nodes"]):
            there = nodes.homes[rank] / "patchq/artifacts" / deployed["wheels"][0]["name"]
            assert node["shipped"] == [there.name]
        started = nodes.call("start", "netns", "--profile", "real", "--json").json
        try:
            asked_by_hand(nodes, places, started["url"], tree)
            whole_and_good(queue, deployed)
            mapped = procs.shared(pid for rank in (0, 1) for pid in nodes.pids(rank))
            faults(nodes, queue.root, places)
        finally:
            stopped = nodes.call("stop", "netns", "--json", code=None).json["nodes"]
        assert [each["left"] for each in stopped] == [[], []]
        assert nodes.left() == []
        assert mapped
        assert [path for path in mapped if os.path.exists(path)] == [], "vLLM itself leaves some"
        served = nodes.call("logs", "netns", "--grep", "POST /v1/chat/completions")
        assert served.out.startswith("ns-a| ")
        missed = smoke(queue.root, code=6)
        assert missed.err.startswith("patchq: nothing runs on ns-a\n")
    for place in places:
        listening = subprocess.check_output(place.command("ss", "-tlnH"), text=True)
        assert listening == ""


def smoke(root: Path, *args: str, code: int) -> Said:
    return call(root, "smoke", "--cluster", "netns", *args, code=code)


def asked_by_hand(nodes: Fleet, places: tuple[Node, Node], url: str, tree: str) -> None:
    with places[0].entered():
        said = requests.get(f"{url}/version", timeout=60).json()
        message = {"role": "user", "content": "The code is amber 42. Reply with the code alone."}
        answer = requests.post(
            f"{url}/v1/chat/completions",
            json={"model": "tiny", "messages": [message]},
            timeout=120,
        ).json()
    assert said["patchq"]["tree"] == tree
    assert answer["choices"][0]["message"]["content"] == "amber 42"
    assert "-tp2" in answer["system_fingerprint"]
    status = nodes.call("status", "netns", "--json").json["nodes"]
    assert [each["state"] for each in status] == ["running", "running"]
    assert [each["health"] for each in status] == [200, None]
    assert status[0]["progress"]["generation_tokens"] > 0
    assert {each["current"]["labels"]["tree"] for each in status} == {tree}


def whole_and_good(queue: Repository, deployed: dict[str, object]) -> None:
    """Every probe passes, by a way that leads through ssh, and the evidence says of what."""
    found = smoke(queue.root, "--profile", "real", "--json", code=0).json
    states = {each["name"]: each["state"] for each in found["probes"]}
    assert states == {
        probe.name: "left out" if probe.name in LEFT_OUT else "passed" for probe in PROBES
    }
    is_ = found["runner"]
    assert (is_["tree"], is_["cluster"], is_["profile"]) == (
        queue.patchq("tree").strip(),
        "netns",
        "real",
    )
    assert is_["artifacts"] == deployed["wheels"]
    assert [(each["name"], each["rank"]) for each in is_["nodes"]] == [("ns-a", 0), ("ns-b", 1)]
    kept = evidence.load(evidence.folder(queue.root, is_["lock"]), "smoke")
    assert kept is not None and kept.runner is not None
    assert kept.value["probes"] == found["probes"]
    (queue.root / "ci/gate.toml").write_text(RULES, encoding="utf-8")
    gate = call(queue.root, "gate", "--json", code=0).json
    assert [each["sha256"] for each in gate["evidence"]] == [kept.sha256]


def faults(nodes: Fleet, root: Path, places: tuple[Node, Node]) -> None:
    """Each is found by its probe, nothing else is said to have failed, and the gate is shut."""
    for fault, name, says in (
        (frozen(nodes, 1), "ranks", "rank 1 on ns-b is frozen: a signal stopped it"),
        (cut(places[1]), "progress", "a wedge: "),
        (killed(nodes, 1), "ranks", "rank 1 on ns-b ended with 137: it was killed"),
    ):
        with fault:
            found = smoke(root, "--json", code=5).json
        wrong = {
            each["name"]: each["says"] for each in found["probes"] if each["state"] == "failed"
        }
        assert list(wrong) == [name], found
        assert wrong[name].startswith(says)
        states = {each["state"] for each in found["probes"]}
        assert "not run" in states, "what could not be asked has not failed"
        shut = call(root, "gate", "--json", code=5).json["findings"]
        assert [each["says"] for each in shut if each["state"] == "failed"] == [
            f"{name} failed: {wrong[name]}"
        ]


@contextmanager
def frozen(nodes: Fleet, rank: int) -> Iterator[None]:
    pids = ranks_own(nodes, rank)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@contextmanager
def cut(place: Node) -> Iterator[None]:
    """The cable, at this end."""
    for state in ("down", "up"):
        subprocess.run(
            ["ip", "-n", place.namespace, "link", "set", place.device, state], check=True
        )
        if state == "down":
            yield


@contextmanager
def killed(nodes: Fleet, rank: int) -> Iterator[None]:
    """As soon as the next question is answered; its guard sees to what it leaves."""
    log = Path(str(nodes.record(0)["log"]))

    def asked() -> int:
        return log.read_bytes().count(b"POST /v1/chat/completions")

    def kill() -> None:
        eventually(lambda: asked() > before, within=120)
        os.kill(int(str(nodes.record(rank)["pid"])), signal.SIGKILL)

    before = asked()
    killing = threading.Thread(target=kill, daemon=True)
    killing.start()
    yield
    killing.join()


def ranks_own(nodes: Fleet, rank: int) -> list[int]:
    """The processes of a rank without their guard."""
    guard = nodes.record(rank)["guard"]
    assert isinstance(guard, dict)
    return [pid for pid in nodes.pids(rank) if pid != guard["pid"]]
