"""ci.yml and sweep.yml as they run: what make is told, and that a cluster is stopped again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ci.machine import ROOT, Machine
from tests.support.forge.repo import Repo
from tests.support.history import git

RECORDS = """\
#!/bin/sh
echo "$@" >>{calls}
case "$*" in {fails}*) exit 1 ;; *--json*) echo '{{}}' ;; esac
"""


@pytest.fixture
def project(tmp_path: Path, repo: Repo, set_up: Callable[[Path], None]) -> Path:
    root = tmp_path / "project"
    for name in ("ci/install-test-packages.sh", "Makefile"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    set_up(root)
    git(root, "init", "-q", "-b", "main", ".")
    git(root, "add", "-A", ".")
    git(root, "commit", "-q", "-m", "project")
    git(root, "push", "-q", "-f", str(repo.path), "HEAD:refs/heads/main")
    return root


def test_what_make_is_told(project: Path, machine: Machine, tmp_path: Path) -> None:
    """For a pull request; make itself only says what it would do (-n)."""
    tools = tmp_path / "tools"
    tools.mkdir()
    sudo = tools / "sudo"
    sudo.write_text('#!/bin/sh\nexec "$@"\n')
    sudo.chmod(0o755)
    machine.environment = {
        **machine.environment,
        "PATH": f"{tools}:{machine.environment['PATH']}",
        "MAKEFLAGS": "n",
    }
    jobs = machine.run("ci", event="pull_request")
    assert list(jobs) == ["lint", "test.0", "test.1"]
    assert all(job.good for job in jobs.values()), "\n".join(map(str, jobs.values()))
    lint = jobs["lint"].step("Format, lint, types, workflows").said
    for tool in ("ruff format --check", "ruff check", "mypy", "zizmor", "check-jsonschema"):
        assert f"/{tool}" in lint
    assert "ci/tests.sh -m 'not runner'\n" in jobs["test.1"].step("Tests").said


@pytest.mark.parametrize(
    ("fails", "calls"),
    [
        ("nothing", ["start", "bench", "stop"]),
        ("bench", ["start", "bench", "stop"]),
        # Somebody else's server is not stopped.
        ("cluster start", ["start"]),
    ],
)
def test_a_sweep_stops_what_it_started(
    project: Path, machine: Machine, tmp_path: Path, fails: str, calls: list[str]
) -> None:
    """The patchq here only says what it was asked: there is nothing to serve."""

    def stand_in(folder: Path) -> None:
        program = folder / "workspace/.venv/bin/patchq"
        program.write_text(RECORDS.format(calls=folder / "calls", fails=fails.replace(" ", "\\ ")))

    machine.after["Install patchq"] = stand_in
    rows = '[{"cluster": "east", "context": 64}, {"cluster": "west", "context": 128}]'
    jobs = machine.run("sweep", event="workflow_dispatch", rows=rows, profile="tiny", rounds=2)
    asked = {
        "start": "cluster start {} --profile tiny",
        "bench": "bench --cluster {} --profile tiny --context {} --rounds 2 --json",
        "stop": "cluster stop {}",
    }
    for name, cluster, context in (("bench.0", "east", 64), ("bench.1", "west", 128)):
        said = (machine.folder / name / "calls").read_text().splitlines()
        assert said == [asked[each].format(cluster, context) for each in calls]
        assert jobs[name].good == (fails == "nothing")
    assert len(machine.artifacts) == (2 if fails == "nothing" else 0)
