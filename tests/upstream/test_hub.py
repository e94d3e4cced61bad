"""Repositories of models, asked by git's own protocol."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchq.errors import Incomplete, PatchqError
from patchq.upstream import hub
from tests.support.history import git
from tests.support.kit import bare_repository


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = bare_repository(tmp_path / "model")
    (root / "config.json").write_text("{}")
    git(root, "add", "-A")
    git(root, "commit", "-q", "--no-verify", "-m", "one")
    git(root, "tag", "-a", "v1", "-m", "v1")
    return root


def test_heads(source: Path) -> None:
    commit = git(source, "rev-parse", "HEAD").decode().strip()
    found = hub.heads(str(source))
    assert found["HEAD"] == found["refs/heads/main"] == commit


@pytest.mark.parametrize("name", ["main", "HEAD", "v1", "refs/heads/main"])
def test_a_name_means_its_commit(source: Path, name: str) -> None:
    commit = git(source, "rev-parse", "HEAD").decode().strip()
    assert hub.resolved(f"file://{source}", name) == (commit, "")
    assert hub.resolved(str(source), commit[:8]) == (commit, "")


def test_a_commit_that_no_branch_is_at_is_taken_with_a_word(source: Path) -> None:
    revision, doubt = hub.resolved(str(source), "0123abc")
    assert revision == "0123abc"
    assert "taken as it is" in doubt


def test_names_that_are_not_there(source: Path) -> None:
    with pytest.raises(PatchqError, match="has no branch, tag or commit 'nowhere'"):
        hub.resolved(str(source), "nowhere")


@pytest.mark.parametrize("url", ["-u", "ext::sh -c true", "a b"])
def test_no_address(url: str) -> None:
    with pytest.raises(PatchqError, match="is not the address of a repository"):
        hub.heads(url)


def test_a_hub_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Incomplete, match="was not reached"):
        hub.heads(f"file://{tmp_path}/none")
    with pytest.raises(Incomplete, match=r"http://\*\*\*@127\.0\.0\.1:9/x was not reached"):
        hub.heads("http://user:secret@127.0.0.1:9/x")
