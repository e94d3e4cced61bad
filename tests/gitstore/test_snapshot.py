"""The project at one of its commits, without a hand on its index, branches or files."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchq.gitstore.git import GitError
from patchq.gitstore.snapshot import (
    commit_of,
    files_at,
    git_dir,
    lay_out,
    seal,
    tags,
    versions,
)
from tests.support.history import git


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Three commits: `a/one` is 1, then 2, then gone; a tag on each."""
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    (root / "a/below").mkdir(parents=True)
    (root / "a/below/two").write_bytes(b"two\r\n\x00\xff")
    (root / "a/link").symlink_to("/etc/passwd")
    (root / "other").write_text("other\n")
    for tag, text in (("t1", "1\n"), ("t2", "2\n"), ("t3", "")):
        (root / "a/one").write_text(text)
        if not text:
            (root / "a/one").unlink()
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", tag)
        git(root, "tag", tag)
    return root


def head(root: Path, name: str = "HEAD") -> str:
    return git(root, "rev-parse", name).decode().strip()


def test_names_mean_commits_or_nothing(project: Path) -> None:
    assert commit_of(project, "t1") == head(project, "t1")
    assert commit_of(project, "main~1") == head(project, "t2")
    assert commit_of(project, "t9") is None
    assert commit_of(project, "--all") is None
    assert commit_of(project, "t1:a/one") is None, "a file is no commit"
    assert tags(project, "t") == ["t1", "t2", "t3"]


def test_plain_files_below_folders_to_the_byte(project: Path) -> None:
    assert files_at(project, "t2", ["a", "nowhere", "other"]) == {
        "a/below/two": b"two\r\n\x00\xff",
        "a/one": b"2\n",
    }


def test_contents_of_a_path_the_newest_first_other_branches_last(project: Path) -> None:
    git(project, "checkout", "-q", "-b", "aside", "t2")
    (project / "a/one").write_text("aside\n")
    git(project, "commit", "-qam", "aside")
    git(project, "checkout", "-q", "main")
    found = list(versions(project, "a/one", most=10))
    assert found == [
        (head(project, "t2"), b"2\n"),
        (head(project, "t1"), b"1\n"),
        (head(project, "aside"), b"aside\n"),
    ]
    assert list(versions(project, "a/one", most=1)) == [(head(project, "aside"), b"aside\n")]


def test_laid_out_it_is_a_repository_of_its_own(project: Path, tmp_path: Path) -> None:
    git(project, "remote", "add", "origin", "https://example.org/x")
    before = git(project, "for-each-ref"), git(project, "status", "--porcelain")
    folder = tmp_path / "beside"
    lay_out(project, head(project, "t1"), folder)
    assert (folder / "a/one").read_text() == "1\n"
    assert git(folder, "status", "--porcelain") == b""
    assert git(folder, "remote") == b""
    (folder / "a/one").unlink()
    (folder / "new").write_text("new\n")
    (folder / "unnamed").write_text("not asked for\n")
    made = seal(folder, ["a/one", "new"], "what came of it\n")
    assert head(folder, "main") == made
    shown = git(folder, "show", "--name-status", "--format=%an %cI", made).decode().split()
    assert shown[2:] == ["D", "a/one", "A", "new"]
    assert git(folder, "status", "--porcelain") == b"?? unnamed\n"
    assert (git(project, "for-each-ref"), git(project, "status", "--porcelain")) == before


def test_the_same_content_is_the_same_commit(project: Path, tmp_path: Path) -> None:
    made = []
    for name in ("one", "two"):
        lay_out(project, head(project), tmp_path / name)
        (tmp_path / name / "new").write_text("new\n")
        made.append(seal(tmp_path / name, ["new"], "step\n"))
    assert made[0] == made[1]


def test_a_linked_work_tree_reads_the_common_objects(project: Path, tmp_path: Path) -> None:
    git(project, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "linked")
    assert git_dir(tmp_path / "linked") == (project / ".git").resolve()
    lay_out(tmp_path / "linked", head(project), tmp_path / "beside")
    assert (tmp_path / "beside/other").read_text() == "other\n"
    with pytest.raises(GitError):
        git_dir(tmp_path)
