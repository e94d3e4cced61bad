"""Nights on two real nodes (ssh servers on loopback) that serve a stand-in of vLLM."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from patchq.nightly import work
from tests.nightly.conftest import Nights, soon
from tests.support.fleet import Fleet, fleet, standin_wheel
from tests.support.history import git

BUILD = """
import json, pathlib, shutil, sys
shutil.copytree(sys.argv[1], "build/cpu")
print(json.dumps({"schema": "patchq.build-run/1", "file": "runner.whl"}))
"""


@pytest.fixture
def nodes(nights: Nights, tmp_path: Path) -> Iterator[Fleet]:
    """The cluster `two`, whose file is in no commit, and a build that brings a wheel."""
    built = tmp_path / "built"
    wheel = standin_wheel(built)
    record = {
        "target": "cpu",
        "requirements": None,
        "lock": None,
        "runner": {"series": "demo", "base": {"release": "v2"}, "tree": "a" * 40, "release": "1"},
        "outputs": [{"name": wheel.name, "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest()}],
    }
    (built / "build.json").write_text(json.dumps(record))
    program = nights.program

    def real(args: Sequence[str]) -> Sequence[str]:
        if args[0] == "build":
            return (sys.executable, "-c", BUILD, str(built))
        return work.patchq(args) if args[0] == "cluster" else program(args)

    nights.program = real  # type: ignore[method-assign]
    with fleet(tmp_path / "fleet", root=nights.root) as made:
        commit_profile(nights)
        yield made


def commit_profile(nights: Nights) -> None:
    """What is served is a part of the runner; where it is served is not."""
    git(nights.root, "add", "ci/profiles")
    git(nights.root, "commit", "-q", "-m", "profile")


def test_a_night_leaves_nothing_on_the_nodes_however_it_ends(nights: Nights, nodes: Fleet) -> None:
    nights.orders(smoke={"sleep": 60, "says": "asking", "once": True})
    served: list[int] = []

    def interrupt() -> None:
        log = nights.kept / "2026-12-01" / "smoke.log"
        soon(lambda: log.exists() and b"asking" in log.read_bytes())
        served.extend(nodes.pids(0))
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        nights.run(cluster="two")
    thread.join()
    assert served, "it served while it was asked"
    assert nodes.left() == []

    ran = nights.run(cluster="two")
    assert (ran.resumed, ran.night.state) == (True, "green")
    assert nights.result(ran, "start.json")["profile"] == "tiny"
    assert {each["name"] for each in nights.result(ran, "deploy.json")["nodes"]} == {
        "node-0",
        "node-1",
    }
    assert nodes.left() == []


def test_a_runner_that_does_not_start_makes_a_red_night(nights: Nights, nodes: Fleet) -> None:
    nodes.profile(FAULT="exit", FAULT_SAYS="ValueError: no such layer", FAULT_RANK="1")
    commit_profile(nights)
    ran = nights.run(cluster="two")
    assert ran.night.state == "red"
    assert nights.states(ran)["deploy"] == "failed"
    failure = nights.result(ran, "start.json")["failure"]
    assert failure["node"] == "node-1"
    assert "ValueError: no such layer" in "\n".join(failure["lines"])
    assert nodes.left() == []


def test_somebody_elses_runner_is_not_stopped(nights: Nights, nodes: Fleet) -> None:
    wheel = nodes.wheel()
    nodes.call("deploy", "two", "--wheel", str(wheel))
    nodes.call("start", "two", "--profile", "tiny")
    try:
        ran = nights.run(cluster="two")
        assert ran.night.state == "incomplete"
        assert "runs on node-0" in ran.night.stages[2].says
        assert nodes.pids(0)
    finally:
        nodes.call("stop", "two", "--patience", "1")
    assert nodes.left() == []
