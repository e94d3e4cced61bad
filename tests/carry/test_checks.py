"""What patches bring to be run: who trusts it, and how it runs."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from patchq.carry import checks
from patchq.carry.report import Check
from patchq.config import Project
from patchq.queue.patch import Patch
from tests.support.history import git
from tests.support.kit import Kit, bare_repository

NAME = "check of topic"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = bare_repository(tmp_path / "queue")
    return Project(root, root / ".git")


@pytest.fixture
def told(kit: Kit) -> Kit:
    kit.history.commit().write("a.txt", b"a\n").tag("v1")
    topic = kit.history.branch("topic", at="v1").commit().write("a.txt", b"ours\n")
    topic.write("bin/tool", b"#!/bin/sh\necho from a tool\n", 0o100755).link("link", b"a.txt")
    return kit


def commit(project: Project, patch: Patch, message: str = "queue") -> None:
    (project.root / "series").mkdir(exist_ok=True)
    (project.root / "series" / patch.file).write_bytes(patch.text)
    git(project.root, "add", "-A")
    git(project.root, "commit", "-q", "-m", message)


def run(kit: Kit, project: Project, *patches: Patch) -> list[Check]:
    return checks.runner(project, "series")(kit.store, kit.tree("topic"), patches)


def trusted(kit: Kit, project: Project, line: str) -> Check:
    patch = kit.patch("v1", "topic", check=line)
    commit(project, patch)
    (found,) = run(kit, project, patch)
    return found


# How it runs


@pytest.mark.parametrize(
    "line",
    [
        "grep -q ours a.txt",
        "sh -c 'test -x bin/tool && ! test -x a.txt'",
        "bin/tool",
        "test -L link",
        "python3 -c 'import patchq, sys; sys.exit(len(sys.stdin.read()))'",
    ],
)
def test_it_passes_in_the_patched_tree(told: Kit, project: Project, line: str) -> None:
    assert trusted(told, project, line) == Check(NAME, True, line)


def test_it_fails_with_the_end_of_what_it_said(told: Kit, project: Project) -> None:
    line = "sh -c 'seq 1000; printf \"\\033[31mno\\n\" >&2; exit 3'"
    found = trusted(told, project, line)
    assert not found.ok
    assert found.detail.startswith(f"{line!r} ends with 3: ")
    assert found.detail.endswith(r"\n999\n1000\n\x1b[31mno")
    assert len(found.detail) < 2 * checks.TAIL


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("no-such-command x", "'no-such-command' does not start: No such file or directory"),
        ("./a.txt", "'./a.txt' does not start: Permission denied"),
        ("echo 'open", '"echo \'open" cannot be read as a command: No closing quotation'),
        ("false", "'false' ends with 1: "),
        ("sh -c 'kill -9 $$'", "\"sh -c 'kill -9 $$'\" ends with -9: "),
    ],
)
def test_it_does_not_pass(told: Kit, project: Project, line: str, why: str) -> None:
    assert trusted(told, project, line) == Check(NAME, False, why)


def test_it_takes_too_long(
    told: Kit, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its children end with it."""
    monkeypatch.setattr(checks, "LIMIT", 0.5)
    line = f"sh -c 'sleep 30 & echo $! > {tmp_path}/pid; wait'"
    found = trusted(told, project, line)
    assert found == Check(NAME, False, f"{line!r} took more than 0 s")
    child = int((tmp_path / "pid").read_text())
    for _ in range(100):
        if not alive(child):
            break
        time.sleep(0.05)
    assert not alive(child)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_no_secret_and_no_foreign_git(
    told: Kit, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GITHUB_TOKEN", "GH_TOKEN", "GIT_DIR", "GIT_WORK_TREE"):
        monkeypatch.setenv(name, "do-not-tell")
    found = trusted(told, project, "sh -c 'env; exit 1'")
    monkeypatch.undo()
    assert "do-not-tell" not in found.detail
    patch = told.patch("v1", "topic", check="sh -c '! env | grep do-not-tell'")
    commit(project, patch, "another check")
    monkeypatch.setenv("GITHUB_TOKEN", "do-not-tell")
    assert [check.ok for check in run(told, project, patch)] == [True]


def test_the_tree_is_gone_afterwards(
    told: Kit, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temp"))
    (tmp_path / "temp").mkdir()
    assert trusted(told, project, f"sh -c 'pwd > {tmp_path}/where; touch made; chmod 500 bin'").ok
    where = Path((tmp_path / "where").read_text().strip())
    assert where.is_relative_to(tmp_path / "temp")
    assert os.listdir(tmp_path / "temp") == []


# Who trusts it


def test_it_is_not_run_before_anybody_trusts_it(
    told: Kit, project: Project, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    patch = told.patch("v1", "topic", check=f"touch {mark}")
    (found,) = run(told, project, patch)
    assert not found.ok
    assert found.detail.startswith(f"not run: 'touch {mark}' is neither committed here nor")
    assert "patchq check --confirm" in found.detail
    commit(project, told.patch("v1", "topic"))
    (found,) = run(told, project, patch)
    assert not found.ok, "the committed patch has no such line"
    assert not mark.exists()


def test_a_staged_patch_is_not_committed(told: Kit, project: Project, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    commit(project, told.patch("v1", "topic"))
    patch = told.patch("v1", "topic", check=f"touch {mark}")
    (project.root / "series" / patch.file).write_bytes(patch.text)
    git(project.root, "add", "-A")
    assert not run(told, project, patch)[0].ok
    assert not mark.exists()


def test_a_changed_line_is_not_trusted_any_more(
    told: Kit, project: Project, tmp_path: Path
) -> None:
    commit(project, told.patch("v1", "topic", check="true"))
    changed = told.patch("v1", "topic", check=f"touch {tmp_path}/ran")
    assert not run(told, project, changed)[0].ok
    checks.confirm(project, [told.patch("v1", "topic", check="true #")])
    assert not run(told, project, changed)[0].ok
    assert not (tmp_path / "ran").exists()


def test_the_same_line_in_another_patch_is_not_trusted(told: Kit, project: Project) -> None:
    told.history.branch("other", at="v1").commit().write("b", b"")
    told.history.save()
    commit(project, told.patch("v1", "topic", check="true"))
    checks.confirm(project, [told.patch("v1", "topic", check="true")])
    (found,) = run(told, project, told.patch("v1", "other", 2, check="true"))
    assert not found.ok


def test_confirmed_here(told: Kit, project: Project) -> None:
    patch = told.patch("v1", "topic", check="grep -q ours a.txt")
    for _ in range(2):
        assert checks.confirm(project, [patch]) == [("topic", "grep -q ours a.txt")]
    assert (project.private / "confirmed-checks").read_text().count("\n") == 1
    assert [check.ok for check in run(told, project, patch)] == [True]


def test_several_checks(told: Kit, project: Project) -> None:
    first = told.patch("v1", "topic", check="true")
    header = first.header.replace("Patchq-Check", "true", "false", "touch x")
    patch = first.with_header(header)
    commit(project, first.with_header(first.header.replace("Patchq-Check", "true", "false")))
    found = run(told, project, patch)
    assert [(check.ok, check.detail[:7]) for check in found] == [
        (True, "true"),
        (False, "'false'"),
        (False, "not run"),
    ]


def test_a_queue_without_checks_writes_no_tree(
    told: Kit, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "check_out", None)
    assert run(told, project, told.patch("v1", "topic")) == []
