"""Real vLLM as the only rank of a cluster of this machine, with faults built in that are switched on
one at a time: each fails its probe, or the comparison, and shuts the gate, alone."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from patchq.build import lock as locks
from patchq.smoke import evidence
from patchq.smoke.catalog import PROBES
from tests.scenarios.conftest import cache as cache
from tests.smoke.runner_evidence import Runner
from tests.support import answering, here, runner, vllm_faults
from tests.support.fleet import sessions
from tests.support.inside import Said, call
from tests.support.real_fleet import BASE, bring, pin
from tests.support.vllm import shipped

pytestmark = [
    *(pytest.mark.runner, pytest.mark.network, pytest.mark.slow),
    # Of its own: the other groups of real servers are long enough.
    pytest.mark.xdist_group("runner-here"),
    pytest.mark.timeout(1800),
]
PORT = 19031
PROFILE = """
model = "tiny"
template = "answers"
served_name = "tiny"
[flags]
enforce-eager = true
max-model-len = 2048
max-num-seqs = 8
block-size = 32
reasoning-parser = "glm45"
tool-call-parser = "glm47"
enable-auto-tool-choice = true
enable-prompt-tokens-details = true
reasoning-config = {{ no_stop_in_reasoning = true }}
{flag}
[speculation]
method = "ngram"
num_speculative_tokens = 3
prompt_lookup_max = 4
[environment]
DO_NOT_TRACK = "1"
HF_HUB_OFFLINE = "1"
OMP_NUM_THREADS = "1"
TORCHINDUCTOR_CACHE_DIR = "{made}/inductor"
VLLM_CACHE_ROOT = "{made}/cache"
VLLM_CPU_KVCACHE_SPACE = "1"
VLLM_CPU_OMP_THREADS_BIND = "nobind"
VLLM_NO_USAGE_STATS = "1"
{switch_name} = "{switch}"
{floor_name} = "{floor}"
[limits]
ready = 300
memory = {floor}
[smoke]
standstill = 60
log_known = ["Failed to create oneDNN linear"]
"""
RULES = """
cluster = "here"
profile = "real"
days = 1
[smoke]
left_out = ["image"]
"""
SPEED = """
[bench]
contexts = [64]
rounds = 12
[compare]
"""
SIZES = ["--context", "64", "--concurrency", "1", "--tokens", "3", "--rounds", "12"]
SPARE = 6.0
"""GiB, at most, that this server takes, some two, and that others may take meanwhile: servers of
other tests. The fault takes what is left of them."""


@dataclass(frozen=True)
class Place:
    """A project, where its only node has everything, and the switch of what runs there."""

    root: Path
    home: Path
    switch: Path

    def call(self, *args: str, code: int | None = 0) -> Said:
        return call(self.root, *args, code=code)

    def on(self, fault: str) -> None:
        self.switch.write_text(fault, encoding="utf-8")

    def gate(self, rules: str = RULES, *, code: int) -> list[str]:
        """What the rules find that fails, or is not there."""
        (self.root / "ci/gate.toml").write_text(rules, encoding="utf-8")
        found = self.call("gate", "--json", code=code).json["findings"]
        return [each["says"] for each in found if each["state"] != "ok"]

    def smoke(self, *only: str, code: int) -> dict[str, Any]:
        """Each probe that did not pass, by name; of all, or of some."""
        some = [word for name in only for word in ("--only", name)]
        found = self.call("smoke", "--cluster", "here", "--json", *some, code=code).json["probes"]
        names = only or tuple(probe.name for probe in PROBES)
        assert {each["name"] for each in found} == set(names)
        return {each["name"]: each for each in found if each["state"] != "passed"}

    @property
    def evidence(self) -> Path:
        return evidence.folder(self.root, locks.find(self.root).digest)


def test_each_fault_fails_its_probe_and_shuts_the_gate_alone(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("patchq.cluster.start.POLL", 0.3)
    place = deployed(tmp_path, cache)
    try:
        place.call("cluster", "start", "here", "--profile", "real")
        whole_and_good(place)
        slower_by_a_tenth(place)
        memory_runs_short(place)
        the_log_tells_of_a_fallback(place)
        place.call("cluster", "stop", "here")
        place.call("cluster", "start", "here", "--profile", "asks")
        another_backend_than_the_one_asked_for(place)
    finally:
        place.call("cluster", "stop", "here", code=None)


def deployed(folder: Path, cache: Path) -> Place:
    """The shipped series, built and brought to the cluster `here`, with the faults in it."""
    engine = runner.stock(BASE)
    model = answering.models(engine.python).answers
    queue = shipped(folder / "queue", cache)
    place = Place(queue.root, folder / "home", folder / "fault")
    bring_all(place, engine, model)
    queue.patchq("lock", codes=(0, 5))
    queue.patchq("build", "--target", "cpu")
    place.call("cluster", "deploy", "here")
    vllm_faults.plugin((place.home / "patchq/current").resolve())
    place.on("")
    return place


def bring_all(place: Place, engine: runner.Runner, model: Path) -> None:
    place.home.mkdir()
    bring(place.home, model)
    spare = vllm_faults.available()
    floor = spare - min(SPARE, spare / 2)
    values = {
        "made": engine.home,
        "switch_name": vllm_faults.SWITCH,
        "switch": place.switch,
        "floor_name": vllm_faults.FLOOR,
        "floor": f"{floor:.2f}",
    }
    cluster = here.cluster(PORT, engine.python, place.home)
    for path, text in {
        "clusters/here.toml": cluster,
        "profiles/real.toml": PROFILE.format(flag="require-requested-backends = true", **values),
        "profiles/asks.toml": PROFILE.format(flag='attention-backend = "TRITON_ATTN"', **values),
    }.items():
        (place.root / "ci" / path).parent.mkdir(parents=True, exist_ok=True)
        (place.root / "ci" / path).write_text(text, encoding="utf-8")
    pin(place.root, model)


def whole_and_good(place: Place) -> None:
    found = place.smoke(code=0)
    assert {name: each["state"] for name, each in found.items()} == {"image": "left out"}
    assert place.gate(code=0) == []


def slower_by_a_tenth(place: Place) -> None:
    """Than the release before, which is this runner at another pace, under another lock."""
    before = Runner(place.root, locks.find(place.root), "0" * 64).release(1, {"tree": "1" * 40})
    found: dict[str, Any] = {"verdict": "inconclusive"}
    with ahead_of_others(place):
        for _ in range(3):
            if found["verdict"] == "inconclusive":  # a machine that is too busy: as a user does
                found = compared(place, before.digest)
    assert found["verdict"] == "worse", found
    wall = {each["metric"]: each["ratio"] for each in found["totals"]}["wall"]
    assert wall == pytest.approx(40 / 44, abs=0.06)
    (shut,) = place.gate(RULES + SPEED, code=5)
    assert shut.startswith("it is worse than release 1: "), shut


def compared(place: Place, before: str) -> dict[str, Any]:
    """What `patchq compare` finds: the release with the lock `before`, and what is slower."""
    file, held = place.root / "release-1.json", place.evidence / "bench.json"
    place.on("paced")
    place.call("bench", "--cluster", "here", *SIZES)
    measured = json.loads(held.read_bytes())
    measured["runner"]["lock"] = before
    file.write_text(json.dumps(measured), encoding="utf-8")
    place.on("paced, slow by 10 %")
    place.call("bench", "--cluster", "here", *SIZES)
    place.on("")
    return place.call("compare", str(file), str(held), "--json", code=None).json


@contextmanager
def ahead_of_others(place: Place) -> Iterator[None]:
    """The server and this process go first, where we may ask for it: what else the machine has to
    do is not what is measured, and they sleep most of the time."""
    (node,) = place.call("cluster", "status", "here", "--json").json["nodes"]
    session = os.getsid(node["run"]["pid"])
    pids = [os.getpid(), *(pid for pid, its in sessions().items() if its == session)]
    prefer(pids, -15)
    try:
        yield
    finally:
        prefer(pids, 0)


def prefer(pids: Sequence[int], nice: int) -> None:
    """Each thread among those of its session, and the session among others (sched(7), autogroup)."""
    for pid in pids:
        with suppress(OSError):
            Path(f"/proc/{pid}/autogroup").write_text(str(nice), encoding="utf-8")
        for each in Path("/proc").glob(f"{pid}/task/*"):
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, int(each.name), nice)


def memory_runs_short(place: Place) -> None:
    says = fails_alone(place, "memory")
    assert says.startswith("here had "), says
    assert " GiB to spare; the profile wants " in says


def the_log_tells_of_a_fallback(place: Place) -> None:
    """The last with this server: what stands in its log stays there."""
    says = fails_alone(place, "logs")
    assert says.startswith("the log of here has a fallback: "), says
    assert "The fast kernel is not there, falling back to the slow one" in says


def fails_alone(place: Place, name: str) -> str:
    """What the probe of that name says, with the fault of that name."""
    place.on(name)
    found = place.smoke(code=5)
    assert {each: found[each]["state"] for each in found} == {"image": "left out", name: "failed"}
    says: str = found[name]["says"]
    assert place.gate(code=5) == [f"{name} failed: {says}"]
    place.on("")
    return says


def another_backend_than_the_one_asked_for(place: Place) -> None:
    """Two probes see it: in the table of backends, and in the log that the table stands in."""
    found = place.smoke("backends", "logs", "recall", code=5)
    assert {each: found[each]["state"] for each in found} == {
        "backends": "failed",
        "logs": "failed",
    }
    says = found["backends"]["says"]
    assert says.startswith("attention: TRITON_ATTN was requested, in use: CPU_ATTN"), says
    lines = found["logs"]["evidence"]["lines"]["here"]
    assert all("TRITON_ATTN" in line and "FALLBACK" in line for line in lines), lines
