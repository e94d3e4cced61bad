"""Heads of pull requests by git alone: few bytes, no contents, and nothing lost when it fails."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from patchq.config import QueueConfig, Source
from patchq.errors import Incomplete, PatchqError
from patchq.gitstore.git import plumbing_env
from patchq.upstream.heads import Heads, git_url
from tests.support.forge.fixtures import forge, forge_server  # noqa: F401
from tests.support.forge.repo import Repo
from tests.support.forge.server import Forge
from tests.support.history import git


@pytest.fixture
def repo(forge: Forge) -> Repo:  # noqa: F811
    return forge.repo("acme/engine", {"engine.py": b"speed = 1\n", "big": b"x" * 50_000})


@pytest.fixture
def heads(forge: Forge, repo: Repo, tmp_path: Path) -> Iterator[Heads]:  # noqa: F811
    with Heads(repo.name, forge.git(repo), tmp_path / "cache") as made:
        yield made


def has(heads: Heads, oid: str) -> bool:
    """Whether an object lies in the store, without fetching it for the question."""
    done = subprocess.run(
        ["git", "cat-file", "--batch-all-objects", "--batch-check=%(objectname)"],
        cwd=heads.store.path,
        env=plumbing_env(),
        capture_output=True,
        text=True,
        check=True,
    )
    return oid in done.stdout.split()


def test_heads_come_without_contents(repo: Repo, heads: Heads) -> None:
    first = repo.pull("One").write("one.py", b"1\n")
    second = repo.pull("Two").write("two.py", b"2\n").closes()
    brought = heads.fetch([1, 2])
    assert brought.heads == {1: first.sha, 2: second.sha} and not brought.missing
    assert has(heads, first.sha) and not has(heads, repo.bare.git("rev-parse", "main:big"))
    assert heads.known(1) == first.sha and heads.known(3) is None


def test_fifty_that_did_not_move_take_few_bytes(
    forge: Forge,  # noqa: F811
    repo: Repo,
    heads: Heads,
) -> None:
    for n in range(300):
        repo.pull(f"P{n}")
    wanted = range(101, 151)
    assert len(heads.fetch(wanted).heads) == 50
    forge.asked.clear()
    assert len(heads.fetch(wanted).heads) == 50
    traffic = sum(each.sent + each.got for each in forge.asked)
    assert len(forge.asked) == 2 and traffic < 5_000


def test_a_moved_head(repo: Repo, heads: Heads) -> None:
    pull = repo.pull("One").write("one.py", b"1\n")
    before = heads.fetch([1]).heads[1]
    pull.force_push("One again").write("one.py", b"3\n")
    assert heads.fetch([1]).heads[1] == pull.sha != before
    assert has(heads, before), "what a patch is pinned to stays"


def test_a_number_that_is_not_there(forge: Forge, repo: Repo, heads: Heads) -> None:  # noqa: F811
    pull = repo.pull("Ten", number=10)
    brought = heads.fetch([1, 10, 100])
    assert brought.heads == {10: pull.sha} and brought.absent == {1, 100}
    where = forge.git(repo)
    assert brought.missing == tuple(f"acme/engine#{n} is not at {where}" for n in (1, 100))


def test_what_was_there_stays(forge: Forge, repo: Repo, heads: Heads) -> None:  # noqa: F811
    pull = repo.pull("One").write("one.py", b"1\n")
    heads.fetch([1])
    forge.fails("git", 503, b"", times=10)
    brought = heads.fetch([1, 2])
    assert brought.heads == {1: pull.sha}
    (says,) = brought.missing
    assert says.startswith(f"{forge.git(repo)} cannot be fetched: ") and "503" in says


def test_offline(forge: Forge, repo: Repo, heads: Heads, tmp_path: Path) -> None:  # noqa: F811
    pull = repo.pull("One").write("one.py", b"1\n")
    heads.fetch([1])
    forge.asked.clear()
    with Heads(repo.name, forge.git(repo), tmp_path / "cache", offline=True) as later:
        brought = later.fetch([1, 2])
        assert later.known(1) == pull.sha
    assert brought.heads == {1: pull.sha} and not forge.asked
    assert brought.missing == ("the head of acme/engine#2 was never fetched",)


def test_what_a_pull_request_changes(forge: Forge, repo: Repo, heads: Heads) -> None:  # noqa: F811
    pull = repo.pull("One").edit("engine.py", b"1", b"2").write("new.py", b"new\n")
    start = pull.start
    repo.commit("Meanwhile").write("other.py", b"o\n")
    heads.fetch([1], branches=["main", "no-such", "../x", "a*b", "--upload-pack=touch x", "a:b"])
    assert heads.branch("main") == repo.bare.sha("refs/heads/main")
    assert heads.branch("no-such") is None
    assert heads.merge_base(pull.sha, "main") == start
    assert heads.merge_base(pull.sha, "no-such") is None
    forge.asked.clear()
    assert heads.files(start, pull.sha) == (b"engine.py", b"new.py")
    assert not forge.asked, "trees suffice"
    new = repo.bare.git("rev-parse", f"{pull.sha}:new.py")
    old = repo.bare.git("rev-parse", f"{start}:engine.py")
    assert not has(heads, new)
    heads.bring(start, pull.sha)
    assert has(heads, new) and has(heads, old)
    forge.asked.clear()
    heads.bring(start, pull.sha)
    assert not forge.asked, "once is enough"


def test_contents_that_cannot_be_had(forge: Forge, repo: Repo, heads: Heads) -> None:  # noqa: F811
    pull = repo.pull("One").write("new.py", b"new\n")
    heads.fetch([1], branches=["main"])
    forge.fails("git", 500, b"", times=10)
    with pytest.raises(Incomplete, match=r"the contents of .* cannot be fetched"):
        heads.bring(pull.start, pull.sha)


def test_a_path_is_read_in_place(repo: Repo, tmp_path: Path) -> None:
    pull = repo.pull("One").write("one.py", b"1\n")
    with Heads(repo.name, str(repo.path), tmp_path / "cache") as heads:
        brought = heads.fetch([1, 5])
        assert brought.heads == {1: pull.sha} and brought.absent == {5}
        assert heads.merge_base(pull.sha, "main") == pull.start
        assert heads.store.objects.blob(repo.bare.git("rev-parse", f"{pull.sha}:one.py")) == b"1\n"
        heads.bring(pull.start, pull.sha)


def test_an_address_that_is_an_option(tmp_path: Path) -> None:
    with pytest.raises(PatchqError, match="is not a repository"):
        Heads("acme/engine", "--upload-pack=touch x", tmp_path)
    with pytest.raises(PatchqError, match="is no repository of a forge"):
        Heads("../x", "https://example.org", tmp_path)


def queue(**more: object) -> QueueConfig:
    return QueueConfig("q", "series", (Source("index", "x"),), **more)  # type: ignore[arg-type]


def test_where_git_finds_a_repository(tmp_path: Path) -> None:
    (tmp_path / "up").mkdir()
    relative = QueueConfig("q", "series", (Source("git", "up"),))
    assert git_url(relative, "a/b", tmp_path) == str(tmp_path / "up")
    assert git_url(queue(), "a/b", tmp_path) == "https://github.com/a/b.git"
    assert git_url(queue(), "acme/engine") == "https://github.com/acme/engine.git"
    beside = queue(github="acme/engine", git="http://h:1/acme/engine.git")
    assert git_url(beside, "Acme/Engine") == "http://h:1/acme/engine.git"
    assert git_url(beside, "other/thing") == "http://h:1/other/thing.git"
    mirror = queue(github="acme/engine", git="/srv/mirror")
    assert git_url(mirror, "acme/engine") == "/srv/mirror"
    assert git_url(mirror, "other/thing") == "https://github.com/other/thing.git"
    enterprise = queue(github="acme/engine", github_api="https://ghe.example.org/api/v3")
    assert git_url(enterprise, "acme/engine") == "https://ghe.example.org/acme/engine.git"
    lives_there = QueueConfig("q", "series", (Source("git", "/srv/up"),), github="acme/engine")
    assert git_url(lives_there, "acme/engine") == "/srv/up"
    assert git_url(lives_there, "other/thing") == "https://github.com/other/thing.git"
    assert git_url(QueueConfig("q", "series", (Source("git", "/srv/up"),)), "a/b") == "/srv/up"


def test_the_store_is_the_history_of_the_same_address(
    forge: Forge,  # noqa: F811
    repo: Repo,
    heads: Heads,
    tmp_path: Path,
) -> None:
    from patchq.upstream.history import History

    repo.pull("One")
    repo.tag("v1.0")
    heads.fetch([1])
    history = History(forge.git(repo), tmp_path / "cache")
    assert history.store.path == heads.store.path
    assert history.latest() == "v1.0"
    history.close()
    assert heads.known(1), "a fetch of tags and branches leaves them alone"
    assert git(heads.store.path, "config", "remote.origin.url").decode().strip() == forge.git(repo)
