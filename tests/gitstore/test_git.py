"""Running git: which environment, which version, what is said when it fails."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from patchq.errors import PatchqError
from patchq.gitstore import git
from patchq.gitstore.git import Done, GitError


@pytest.fixture(autouse=True)
def fresh_version() -> None:
    git.version.cache_clear()


def fake_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str) -> None:
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{says}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


def test_the_git_here_will_do() -> None:
    git.require_version()
    assert git.version() >= git.NEEDED


@pytest.mark.parametrize("says", ["git version 2.38.9", "git version 1.99.1"])
def test_a_git_that_is_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str) -> None:
    fake_git(tmp_path, monkeypatch, says)
    with pytest.raises(
        PatchqError, match=r"is too old: patchq needs 2\.39 or newer to merge"
    ) as caught:
        git.require_version()
    assert caught.value.hint == "install a newer git"


@pytest.mark.parametrize("says", ["git version 2.39.5 (Apple Git-154)", "git version 10.0.rc1"])
def test_a_git_that_is_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str
) -> None:
    fake_git(tmp_path, monkeypatch, says)
    git.require_version()


def test_a_git_without_a_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_git(tmp_path, monkeypatch, "hello")
    with pytest.raises(PatchqError, match="cannot read git's version from 'hello'"):
        git.require_version()


def test_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PatchqError, match="git is not installed"):
        git.run(["version"])


def test_nothing_of_the_user_reaches_plumbing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/x")
    monkeypatch.setenv("GIT_SSH_COMMAND", "ssh -v")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    env = git.plumbing_env({"GIT_INDEX_FILE": "i"})
    assert "GIT_DIR" not in env and "GIT_SSH_COMMAND" not in env
    assert (env["GIT_CONFIG_GLOBAL"], env["GIT_CONFIG_NOSYSTEM"]) == (os.devnull, "1")
    assert (env["LC_ALL"], env["GIT_INDEX_FILE"], env["HTTPS_PROXY"][:4]) == ("C", "i", "http")
    listed = git.run(["config", "--list", "--show-origin"], cwd=Path("/")).out.decode()
    assert {line.partition("=")[0].lower() for line in listed.splitlines()} == {
        f"command line:\t{key}".lower() for key in git.PINNED
    }


def test_a_fetch_keeps_what_reaches_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies, keys and helpers stay; hooks, prompts and the caller's repository do not."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/home/me/.gitconfig")
    monkeypatch.delenv("GIT_CONFIG_NOSYSTEM")
    monkeypatch.setenv("GIT_SSH_COMMAND", "ssh -i key")
    monkeypatch.setenv("GIT_WORK_TREE", "/x")
    env = git.network_env()
    assert (env["GIT_CONFIG_GLOBAL"], env["GIT_SSH_COMMAND"]) == (
        "/home/me/.gitconfig",
        "ssh -i key",
    )
    assert "GIT_CONFIG_NOSYSTEM" not in env and "GIT_WORK_TREE" not in env
    assert env["GIT_TERMINAL_PROMPT"] == "0"
    assert "core.hooksPath" in env.values()


def test_what_a_failure_says() -> None:
    assert Done(1, b"", b"error: no\nfatal: more\n").why == "no"
    assert Done(1, b"", b"\n").why == ""
    assert (
        str(GitError(["--quiet", "apply"], Done(128, b"", b"fatal: bad\n")))
        == "git apply failed: bad"
    )
    assert str(GitError(["apply"], Done(3, b"", b""))) == "git apply failed: exit status 3"


def test_statuses_that_are_answers() -> None:
    assert git.run(["diff", "--no-index", "--quiet", "/dev/null", __file__], ok=(0, 1)).code == 1
    with pytest.raises(GitError):
        git.run(["diff", "--no-index", "--quiet", "/dev/null", __file__])
    assert (
        git.run(["hash-object", "--stdin"], input=b"").out
        == b"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\n"
    )
