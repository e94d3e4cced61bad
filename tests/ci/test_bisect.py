"""bisect.yml as it runs: rounds of steps, two machines at the same time, one answer."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ci.machine import ROOT, Machine
from tests.support.cli import Queue
from tests.support.forge.repo import Repo
from tests.support.history import History, git

ASKED = {
    "run": "sh -c '! grep -q third series/series'",
    "needs": "neither",
    "clusters": '["east", "west"]',
}
"""The fault is there where the series has the patch `third`."""


@pytest.fixture
def queue(
    tmp_path: Path, repo: Repo, machine: Machine, set_up: Callable[[Path], None]
) -> tuple[str, str]:
    """A project at the forge; the commits without and with five patches."""
    upstream = History(tmp_path / "upstream.git")
    upstream.commit("start").write("a.txt", b"one\n").tag("v1")
    topic = upstream.branch("topic", at="v1")
    for number, name in enumerate(("First", "Second", "Third", "Fourth", "Fifth"), 1):
        topic = topic.commit(name).write(f"{number}.txt", b"new\n")
    made = Queue(tmp_path, upstream).start(None)
    set_up(made.root)
    (made.root / "ci/spread.py").write_text((ROOT / "ci/spread.py").read_text())
    (made.root / ".gitignore").write_text("/build/\n/.venv/\n")
    made.run("lock")
    before = git(made.commit().root, "rev-parse", "HEAD").decode().strip()
    made.run("import", "--git", str(upstream.path), "v1..topic")
    made.run("lock")
    after = git(made.commit().root, "rev-parse", "HEAD").decode().strip()
    git(made.root, "push", "-q", "-f", str(repo.path), "HEAD:refs/heads/main")
    return before, after


@pytest.mark.slow
def test_two_machines_find_it(queue: tuple[str, str], machine: Machine) -> None:
    """Both ends in the first round, two subsets in the second: one of five, where one machine alone
    needs a round more for each."""
    good, bad = queue
    jobs = machine.run("bisect", event="workflow_dispatch", good=good, bad=bad, **ASKED)
    answer = jobs["answer"].step("Say it")
    assert answer.code == 0 and "patch third added" in answer.said, answer.said
    assert "2 builds and 2 runs" in answer.said
    tried = [name for name in jobs if "/try." in name]
    assert tried == ["round-1/try.0", "round-1/try.1", "round-2/try.0", "round-2/try.1"]
    summary = machine.folder / "answer/summary"
    assert all(line.startswith("    ") for line in summary.read_text().splitlines())


@pytest.mark.slow
def test_a_machine_that_fails_loses_nothing(queue: tuple[str, str], machine: Machine) -> None:
    """What the other one has seen is taken in; its own step comes again in the next round."""
    good, bad = queue
    failed = []

    def fail(folder: Path) -> None:
        if folder.name == "round-1.try.1":
            failed.append(folder.name)
            (folder / "temp/bisection/session.json").unlink()

    machine.after["Take the state"] = fail
    jobs = machine.run("bisect", event="workflow_dispatch", good=good, bad=bad, **ASKED)
    assert failed and not jobs["round-1/try.1"].good and jobs["round-1/take"].good
    answer = jobs["answer"].step("Say it")
    assert answer.code == 0 and "patch third added" in answer.said, answer.said
    assert "round-3/try.0" in jobs and "round-4/next" not in jobs


@pytest.mark.parametrize(
    "clusters", ["sparks", "[]", '["../x"]', '["a", "a"]', "[1]", '["a b"]', '{"a": 1}']
)
def test_what_is_no_list_of_clusters(clusters: str) -> None:
    done = spread("names", clusters)
    assert done.returncode == 1 and "is no list of clusters: write it like" in done.stderr


def test_a_step_for_each_cluster() -> None:
    said = json.dumps({"state": "open", "steps": [{"step": "0a"}, {"step": "0b"}]})
    assert spread("names", '["a", "b-1"]').stdout == "a\nb-1\n"
    for clusters, rows in (
        ('["x"]', [{"step": "0a", "cluster": "x"}]),
        ('["x", "y", "z"]', [{"step": "0a", "cluster": "x"}, {"step": "0b", "cluster": "y"}]),
    ):
        done = spread("steps", clusters, said)
        assert done.stdout == f"state=open\nsteps={json.dumps(rows)}\n"


def spread(what: str, clusters: str, said: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "ci/spread.py", what, clusters]
    return subprocess.run(command, input=said, capture_output=True, text=True)
