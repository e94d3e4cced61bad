"""A commit and its tag, both or none, whatever stands in the work tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchq.errors import PatchqError
from patchq.gitstore import tags
from tests.support.history import git
from tests.support.kit import bare_repository


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    bare_repository(folder)
    (folder / "a").write_text("a\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--no-verify", "-m", "first")
    return folder


def said(root: Path, *args: str) -> str:
    return git(root, *args).decode().strip()


def test_nothing_of_the_work_tree_comes_in(root: Path) -> None:
    (root / "a").write_text("edited\n")
    (root / "staged").write_text("b\n")
    git(root, "add", "staged")
    hook = root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    sealed = tags.prepare(root, {"x/y": b"new\n"}, "Message\n\nbody\n", "t-1")
    assert tags.tagged(root, "t-1") is None and said(root, "log", "--format=%s") == "first"
    tags.seal(root, sealed)
    assert tags.tagged(root, "t-1") == sealed.commit == said(root, "rev-parse", "HEAD")
    assert said(root, "show", "--format=", "--name-only", "HEAD") == "x/y"
    assert said(root, "cat-file", "-t", "t-1") == "tag"
    assert said(root, "log", "-1", "--format=%an %cn") == "A. Author C. Committer"
    assert tags.at(root, sealed.commit, "x/y") == b"new\n"
    assert tags.at(root, sealed.commit, "x/z") is None
    assert tags.folder_at(root, sealed.commit, "x") == {"y": b"new\n"}
    assert tags.folder_at(root, sealed.commit, "a") == {}
    (root / "x").mkdir()
    (root / "x/y").write_text("new\n")
    tags.refresh(root, ["x/y"])
    assert said(root, "status", "--porcelain").split("\n") == ["M a", "A  staged"]


def test_a_tag_or_a_commit_meanwhile_stops_both(root: Path) -> None:
    sealed = tags.prepare(root, {"x": b"1\n"}, "M\n", "t-1")
    git(root, "tag", "t-1")
    with pytest.raises(PatchqError, match="does not take the release"):
        tags.seal(root, sealed)
    assert said(root, "log", "--format=%s") == "first"
    with pytest.raises(PatchqError, match="is there already"):
        tags.prepare(root, {"x": b"1\n"}, "M\n", "t-1")


def test_without_a_name_nothing_is_made(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.delenv(f"GIT_{name}_NAME")
        monkeypatch.delenv(f"GIT_{name}_EMAIL")
    git(root, "config", "user.useConfigOnly", "true")
    with pytest.raises(PatchqError, match="git does not commit") as caught:
        tags.prepare(root, {"x": b"1\n"}, "M\n", "t-1")
    assert "user.email" in caught.value.hint


def test_what_is_dirty(root: Path) -> None:
    assert tags.dirty(root, "build") == []
    (root / "build").mkdir()
    (root / "build/x").write_text("x")
    assert tags.dirty(root, "build") == []
    (root / "new").write_text("x")
    assert tags.dirty(root, "build") == ["?? new"]


def test_nothing_is_committed_yet(tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    bare_repository(folder)
    with pytest.raises(PatchqError, match="nothing is committed"):
        tags.head(folder)
