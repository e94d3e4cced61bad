"""What the workflows may do: the least, by pinned actions, and never with a stranger's words."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ci.machine import EXPRESSION, ROOT, WORKFLOWS, Tree, load, workflow

PIN = re.compile(r"uses: (?P<action>[\w./-]+)@(?P<commit>[0-9a-f]{40}) # v\d+\.\d+\.\d+")
EVERY = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)

# All that any job may do, by workflow and job. More is a decision, made here and in the file.
READ = {"contents": "read"}
MAY: dict[str, dict[str, dict[str, str]]] = {
    "alarm": {"alarm": READ | {"issues": "write"}},
    "bisect": dict.fromkeys(("begin", *(f"round-{n}" for n in range(1, 10)), "answer"), READ),
    "ci": {"lint": READ, "test": READ},
    "nightly": {
        "night": READ,
        "tell": {"contents": "write", "pull-requests": "write", "issues": "write"},
    },
    "release": {
        "bundle": {},
        "publish": {"contents": "write", "id-token": "write", "attestations": "write"},
    },
    "round": {"next": READ, "try": READ, "take": READ},
    "sweep": {"bench": READ},
}
CALLED = "./.github/workflows/round.yml"


def jobs(file: Tree) -> Iterator[tuple[str, Tree]]:
    """Those with steps of their own."""
    for key, job in file["jobs"].items():
        if "uses" in job:
            assert job["uses"] == CALLED and "secrets" not in job
        else:
            yield key, job


def steps(file: Tree) -> Iterator[tuple[str, Tree]]:
    for key, job in jobs(file):
        for step in job["steps"]:
            yield key, step


def own(job: Tree) -> bool:
    """Whether it runs on a machine of the project's own."""
    return "self-hosted" in job["runs-on"]


def tool(name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name(name)
    return subprocess.run([program, *arguments], cwd=ROOT, capture_output=True, text=True)


def test_zizmor_finds_nothing() -> None:
    """As `make lint` runs it; what is accepted stands in .github/zizmor.yml, with its reason."""
    done = tool("zizmor", "--offline", "--persona=auditor", ".github")
    assert done.returncode == 0, done.stdout + done.stderr


def test_zizmor_would_find_something(tmp_path: Path) -> None:
    path = tmp_path / ".github/workflows/nightly.yml"
    path.parent.mkdir(parents=True)
    text = (ROOT / ".github/workflows/nightly.yml").read_text(encoding="utf-8")
    path.write_text(text.replace('exit "$STATUS"', "exit ${{ github.event.issue.title }}"))
    done = tool("zizmor", "--offline", "--no-config", tmp_path)
    assert done.returncode >= 11 and "template-injection" in done.stdout


def test_the_schemas() -> None:
    """Of workflows, and of dependabot's file."""
    for schema, files in (
        ("vendor.github-workflows", WORKFLOWS),
        ("vendor.dependabot", [ROOT / ".github/dependabot.yml"]),
    ):
        done = tool("check-jsonschema", "--builtin-schema", schema, *files)
        assert done.returncode == 0, done.stdout + done.stderr


@EVERY
def test_actions_are_pinned(path: Path) -> None:
    """By commit, with the version for people; one pin of an action everywhere."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if "uses:" in line]
    assert all(PIN.search(line) or line.strip() == f"uses: {CALLED}" for line in lines), lines


def test_one_pin_an_action() -> None:
    pins: dict[str, set[str]] = {}
    for path in WORKFLOWS:
        for found in PIN.finditer(path.read_text(encoding="utf-8")):
            pins.setdefault(found["action"], set()).add(found[0])
    assert {action: len(each) for action, each in pins.items() if len(each) != 1} == {}
    assert all(action.startswith("actions/") for action in pins), "by GitHub itself, all of them"


@EVERY
def test_nothing_is_put_into_a_script(path: Path) -> None:
    for _, step in steps(load(path)):
        assert "${{" not in step.get("run", ""), f"{step['name']}: take it through env"


@EVERY
def test_scripts_pass_shellcheck(path: Path) -> None:
    for _, step in steps(load(path)):
        if script := step.get("run"):
            done = subprocess.run(
                [Path(sys.executable).with_name("shellcheck"), "--shell=bash", "-"],
                input=f"set -eo pipefail\n{script}",
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, f"{step['name']}: {done.stdout}"


def test_the_least_permissions() -> None:
    found = {}
    for path in WORKFLOWS:
        file = load(path)
        assert file["permissions"] == {}, f"{path.name} gives every job something"
        found[path.stem] = {key: job["permissions"] for key, job in file["jobs"].items()}
    assert found == MAY


@EVERY
def test_every_job_has_an_end(path: Path) -> None:
    file = load(path)
    assert file["defaults"]["run"]["shell"] == "bash", "pipefail is on then"
    assert file["concurrency"]["group"]
    for key, job in jobs(file):
        assert 0 < job["timeout-minutes"] <= 720, key
        assert own(job) or job["runs-on"].startswith("ubuntu-2"), f"{key}: a machine that moves"


@EVERY
def test_no_checkout_keeps_the_token(path: Path) -> None:
    for key, step in steps(load(path)):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False, key


@EVERY
def test_a_token_is_one_steps_alone(path: Path) -> None:
    """It stands in the environment of the step that needs it, and on GitHub's own machines."""
    file = load(path)
    assert "GITHUB_TOKEN" not in str(file.get("env")), "every step would have it"
    for key, job in jobs(file):
        assert "token" not in str(job.get("env")).lower()
        for step in job["steps"]:
            text = str(step)
            if "github.token" in text or "secrets" in text.lower():
                assert not own(job), f"{key}: {step['name']} is on a machine of the project's own"
                assert job["permissions"].keys() - {"contents"} or file["name"] == "release"
                assert step["env"]["GITHUB_TOKEN"] == "${{ github.token }}"
    assert "secrets." not in path.read_text(encoding="utf-8")


@EVERY
def test_no_stranger_reaches_our_machines(path: Path) -> None:
    """What anybody can start runs on GitHub's machines, with a token that reads."""
    file = load(path)
    ours = {key for key, job in jobs(file) if own(job)}
    events = set(file["on"])
    assert not events & {"pull_request_target", "workflow_run", "issue_comment", "issues"}
    if "pull_request" in events:
        assert not ours
        assert all(job["permissions"] == READ for _, job in jobs(file))
    if ours:
        assert events <= {"schedule", "workflow_dispatch", "workflow_call"}


def test_the_night_has_the_time_that_its_stages_have() -> None:
    """patchq ends a stage at its limit and says which; GitHub would only end the job."""
    settings = tomllib.loads((ROOT / "ci/nightly.toml").read_text(encoding="utf-8"))
    assert (
        sum(settings["minutes"].values()) < workflow("nightly")["jobs"]["night"]["timeout-minutes"]
    )


def test_schedules_are_at_odd_minutes() -> None:
    """At the full hour GitHub is late by hours, or drops the run."""
    for path in WORKFLOWS:
        for entry in load(path)["on"].get("schedule") or ():
            minute = int(entry["cron"].split()[0])
            assert minute % 5, f"{path.name}: {entry['cron']}"


def test_expressions_are_known() -> None:
    """Nothing that a stranger can write comes into one: no titles, no branch names of forks."""
    for path in WORKFLOWS:
        for found in EXPRESSION.finditer(path.read_text(encoding="utf-8")):
            names = set(re.findall(r"github\.[\w.]+", found[1]))
            assert names <= {
                *("github.token", "github.ref", "github.event_name", "github.run_id"),
            }, path.name


def test_what_docs_nightly_names_is_there() -> None:
    """Files, variables of the repository, units: somebody follows it word by word."""
    text = (ROOT / "docs/nightly.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120, "it is one page"
    files = set(re.findall(r"(?:\.github/workflows|ci|tests)/[\w./-]*\w", text))
    assert len(files) > 8 and all((ROOT / each).exists() for each in files), files
    links = set(re.findall(r"\]\((\w+\.md)", text))
    assert [each for each in links if not (ROOT / "docs" / each).is_file()] == []
    used = set()
    for path in WORKFLOWS:
        used |= set(re.findall(r"vars\.(\w+)", path.read_text(encoding="utf-8")))
    assert used == set(re.findall(r"PATCHQ_\w+", text)), "every variable is explained"
    for unit in re.findall(r"patchq-nightly[\w-]*(?=@patchq)", text):
        assert (ROOT / f"ci/systemd/{unit}@.service").is_file()
