"""The project's own repository: what was committed, and committing what a command wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchq.errors import PatchqError
from patchq.gitstore import project
from tests.support.history import git


@pytest.fixture
def root(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main", "project")
    return tmp_path / "project"


def write(root: Path, **files: bytes) -> None:
    for name, data in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def test_what_is_committed(root: Path) -> None:
    write(root, series__series=b"\xff\r\n", other=b"1")
    assert project.committed(root, "series/series") is None, "there is no commit yet"
    git(root, "add", "-A")
    git(root, "commit", "-qm", "x")
    write(root, series__series=b"new")
    assert project.committed(root, "series/series") == b"\xff\r\n"
    assert project.committed(root, "series/none") is None
    assert project.committed(root, "other/none") is None


def test_only_what_is_named_is_committed(root: Path) -> None:
    write(root, series__a=b"1", series__b=b"1", mine=b"1")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "x")
    write(root, series__a=b"2", series__new=b"1", mine=b"2", staged=b"1")
    (root / "series/b").unlink()
    git(root, "add", "staged")
    assert project.changed(root, ["series"]) == [" M series/a", " D series/b", "?? series/new"]
    made = project.commit(root, ["series"], "sync\n\nbody\n")
    assert git(root, "rev-parse", "HEAD").decode().strip() == made
    assert git(root, "log", "-1", "--format=%B").strip() == b"sync\n\nbody"
    listed = (
        git(root, "show", "--name-status", "--no-renames", "--format=", "HEAD").decode().split()
    )
    assert listed == ["M", "series/a", "D", "series/b", "A", "series/new"]
    assert project.changed(root, ["series"]) == []
    status = git(root, "status", "--porcelain").decode().splitlines()
    assert status == [" M mine", "A  staged"], "the user's own changes stay as they were"


def test_hooks_do_not_run(root: Path) -> None:
    hook = root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    write(root, series__a=b"1")
    project.commit(root, ["series"], "x")


def test_a_commit_that_git_refuses(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, series__a=b"1")
    project.commit(root, ["series"], "x")
    with pytest.raises(PatchqError, match="git does not commit") as caught:
        project.commit(root, ["series"], "nothing changed")
    assert caught.value.hint == "the files are written; commit them by hand"
    with pytest.raises(PatchqError, match=r"git does not commit: .*none"):
        project.commit(root, ["none"], "x")
