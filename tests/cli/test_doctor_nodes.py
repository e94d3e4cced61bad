"""`patchq doctor --cluster`: as its user has it, with real nodes behind a real ssh server."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import ready
from tests.support.cli import Outcome
from tests.support.sshd import NODE, Sshd

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the cpu target is x86-64")

CLUSTER = """
target = "cpu"
port = {port}
master_port = 18895
ssh_config = {config!r}

[[node]]
name = "one"
rank = 0
ssh = "node"
address = "127.0.0.1"
device = "lo"

[[node]]
name = "two"
rank = 1
ssh = "{second}"
address = "127.0.0.2"
device = "lo"
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with Sshd(tmp_path_factory.mktemp("sshd")) as running:
        yield running


class Project:
    """A repository with one cluster, `two`."""

    def __init__(self, root: Path, server: Sshd) -> None:
        self.root, self._server = root, server
        subprocess.run(["git", "init", "-q", root], check=True)
        self.describe()

    def describe(self, second: str = NODE, port: int = 18894) -> None:
        folder = self.root / "ci" / "clusters"
        folder.mkdir(parents=True, exist_ok=True)
        text = CLUSTER.format(port=port, config=str(self._server.config), second=second)
        (folder / "two.toml").write_text(text, encoding="utf-8")

    def doctor(self, *args: str) -> Outcome:
        command = ("doctor", "--cluster", "two", *args)
        done = ready.run(command, cwd=self.root, env=os.environ)
        assert b"Traceback" not in done.stderr, done.stderr
        return Outcome(command, done.returncode, done.stdout, done.stderr)


@pytest.fixture
def project(tmp_path: Path, server: Sshd) -> Project:
    return Project(tmp_path / "project", server)


def states(outcome: Outcome) -> dict[str, str]:
    return {check["name"]: check["state"] for check in outcome.json["checks"]}


def test_sound_nodes(project: Project) -> None:
    told = project.doctor("--json")
    assert (told.code, states(told)) == (0, {"one": "ok", "two": "ok"})
    assert "memory available" in project.doctor().text


def test_a_port_that_is_taken_is_fatal(project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        project.describe(port=port)
        told = project.doctor("--json")
    assert (told.code, states(told)) == (5, {f"one port {port}": "fatal", "two": "ok"})


def test_a_node_that_is_not_reached(project: Project) -> None:
    project.describe(second="nobody-has-this-name")
    told = project.doctor("--json")
    assert (told.code, states(told)) == (6, {"one": "ok", "two": "unknown"})


def test_a_cluster_that_is_not_there(project: Project) -> None:
    told = project.doctor("--cluster", "three")
    assert told.code == 1
    assert told.err.decode().splitlines() == [
        "patchq: there is no cluster 'three'",
        "        in ci/clusters there is: two",
    ]
