"""A night's copy of the project: apart from it, with its remote, and without its hooks."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchq.errors import Incomplete, PatchqError
from patchq.gitstore import clone as clones
from patchq.gitstore import snapshot
from patchq.gitstore.project import commit as commit_paths
from tests.support.history import git

NIGHT = "refs/patchq/nights/2026-12-01"


def said(root: Path, *args: str) -> str:
    return git(root, *args).decode().strip()


def commit(root: Path, path: str, text: str) -> str:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", path)
    return said(root, "rev-parse", "HEAD")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    git(tmp_path, "init", "-q", "-b", "main", str(root))
    commit(root, "a.txt", "one\n")
    return root


def test_it_has_the_commit_that_was_asked_for_on_its_own_branch(
    project: Path, tmp_path: Path
) -> None:
    first = said(project, "rev-parse", "HEAD")
    git(project, "tag", "release-1")
    commit(project, "a.txt", "two\n")
    copy = tmp_path / "nights/copy"
    clones.clone(project, copy, first, "trunk")
    assert (copy / "a.txt").read_text() == "one\n"
    assert said(copy, "symbolic-ref", "--short", "HEAD") == "trunk"
    assert said(copy, "status", "--porcelain") == ""
    assert snapshot.tags(copy, "release-") == ["release-1"]
    assert not (copy / ".git/objects/info/alternates").exists(), "nothing is shared"


@pytest.mark.parametrize("kind", ["worktree", "detached", "shallow"])
def test_any_kind_of_checkout_can_be_copied(project: Path, tmp_path: Path, kind: str) -> None:
    head = commit(project, "a.txt", "two\n")
    root = tmp_path / "other"
    if kind == "worktree":
        git(project, "worktree", "add", "-q", str(root))
        head = commit(root, "a.txt", "mine\n")
    elif kind == "detached":
        root = project
        git(project, "checkout", "-q", "--detach")
        head = commit(project, "a.txt", "three\n")
    else:
        git(tmp_path, "clone", "-q", "--depth", "1", f"file://{project}", str(root))
    clones.clone(root, tmp_path / "copy", head, "main")
    assert said(tmp_path / "copy", "rev-parse", "HEAD") == head


def test_its_remote_is_the_projects(project: Path, tmp_path: Path) -> None:
    head = said(project, "rev-parse", "HEAD")
    for url, there in (("https://example.org/a/b", "https://example.org/a/b"), ("../r", "")):
        git(project, "config", "remote.origin.url", url)
        (tmp_path / "r").mkdir(exist_ok=True)
        copy = tmp_path / f"copy-{len(url)}"
        clones.clone(project, copy, head, "main")
        assert said(copy, "config", "remote.origin.url") == (there or f"{project}/../r")


def test_hooks_do_not_run_and_commits_have_a_name(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "GIT_AUTHOR_NAME",
        "GIT_AUTHOR_EMAIL",
        "GIT_COMMITTER_NAME",
        "GIT_COMMITTER_EMAIL",
    ):
        monkeypatch.delenv(name)
    template = tmp_path / "template"
    for hook in ("post-checkout", "pre-commit", "reference-transaction"):
        (template / "hooks").mkdir(parents=True, exist_ok=True)
        path = template / "hooks" / hook
        path.write_text(f"#!/bin/sh\ntouch {tmp_path}/{hook}\nexit 1\n")
        path.chmod(0o755)
    config = tmp_path / "gitconfig"
    config.write_text(f"[init]\ntemplateDir = {template}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    copy = tmp_path / "copy"
    clones.clone(project, copy, said(project, "rev-parse", "HEAD"), "main")
    (copy / "series").mkdir()
    (copy / "series/new.patch").write_text("x")
    commit_paths(copy, ["series"], "made")
    assert said(copy, "log", "-1", "--format=%an <%ae>") == "patchq nightly <patchq@localhost>"
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "copy",
        "gitconfig",
        "project",
        "template",
    ]


def test_what_is_lent_is_there_and_in_no_commit(project: Path, tmp_path: Path) -> None:
    head = commit(project, "ci/clusters/pair.toml", "as committed\n")
    (project / "ci/clusters/pair.toml").write_text("as it is here\n")
    (project / "ci/clusters/pair.ssh").write_text("Host a\n")
    copy = tmp_path / "copy"
    clones.clone(project, copy, head, "main")
    clones.lend(project, copy, "ci/clusters")
    clones.lend(project, copy, "ci/nowhere")
    assert (copy / "ci/clusters/pair.toml").read_text() == "as it is here\n"
    assert (copy / "ci/clusters/pair.ssh").read_text() == "Host a\n"
    assert said(copy, "status", "--porcelain") == ""
    git(copy, "add", "-A")
    assert said(copy, "diff", "--cached", "--name-only") == ""


def test_a_commit_comes_back_to_the_project_and_can_be_let_go(
    project: Path, tmp_path: Path
) -> None:
    start = said(project, "rev-parse", "HEAD")
    copy = tmp_path / "copy"
    clones.clone(project, copy, start, "main")
    made = commit(copy, "series/a.patch", "x")
    clones.bring(project, copy, made, NIGHT)
    assert said(project, "rev-parse", NIGHT) == made
    assert said(project, "rev-parse", "HEAD") == start
    clones.clone(project, tmp_path / "next", made, "main")
    clones.drop(project, NIGHT)
    clones.drop(project, NIGHT)
    assert said(project, "for-each-ref", "refs/patchq") == ""


def test_a_bundle_is_taken_where_its_start_is_known(project: Path, tmp_path: Path) -> None:
    start = said(project, "rev-parse", "HEAD")
    copy, file = tmp_path / "copy", tmp_path / "series.bundle"
    clones.clone(project, copy, start, "main")
    made = commit(copy, "series/a.patch", "x")
    clones.bundle(copy, start, made, file)

    def take(root: Path, allowed: str) -> None:
        clones.unbundle(
            root,
            file,
            start=start,
            commit=made,
            branches=("HEAD",),
            allowed={allowed: True},
            ref=NIGHT,
        )

    take(project, "series")
    assert said(project, "rev-parse", NIGHT) == made
    with pytest.raises(PatchqError, match=r"changes series/a\.patch"):
        take(project, "serie")
    assert said(project, "for-each-ref", "refs/patchq") == "", "what is refused is not kept"
    stranger = tmp_path / "stranger"
    git(tmp_path, "init", "-q", str(stranger))
    commit(stranger, "b.txt", "other\n")
    with pytest.raises(PatchqError, match="is in no branch"):
        take(stranger, "series")


def test_a_tag_goes_out_once_and_never_over_another(project: Path, tmp_path: Path) -> None:
    remote = tmp_path / "remote.git"
    git(tmp_path, "clone", "-q", "--bare", str(project), str(remote))
    git(project, "remote", "add", "origin", str(remote))
    git(project, "tag", "-a", "-m", "one", "release-1")
    for _ in range(2):
        clones.push_tag(project, "origin", "release-1")
    assert said(remote, "rev-parse", "release-1") == said(project, "rev-parse", "release-1")
    git(project, "tag", "-f", "-a", "-m", "other", "release-1")
    with pytest.raises(Incomplete, match="the tag release-1 is not taken by"):
        clones.push_tag(project, "origin", "release-1")
