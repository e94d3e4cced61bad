"""The branch of all nights: added to, never forced, read strictly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from patchq.errors import Incomplete
from patchq.gitstore import push
from patchq.nightly import form, shared
from patchq.nightly.model import Night
from tests.nightly.tales import night
from tests.support.history import git

NIGHTS = [night(f"2026-12-0{day}") for day in range(1, 5)]


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    path = tmp_path / "remote.git"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(path))
    return path


def clone(remote: Path, name: str) -> Path:
    path = remote.parent / name
    git(remote.parent, "init", "-q", "-b", "main", str(path))
    git(path, "remote", "add", "origin", str(remote))
    return path


@pytest.fixture
def root(remote: Path) -> Path:
    return clone(remote, "here")


def log(remote: Path) -> list[str]:
    return git(remote, "log", "--format=%s", shared.BRANCH).decode().splitlines()


def test_the_nights_survive_a_workspace(root: Path, remote: Path) -> None:
    assert shared.read(root) == shared.Shared()
    for each in NIGHTS:
        shared.add(root, each)
    fresh = clone(remote, "fresh")
    assert shared.read(fresh) == shared.Shared(tuple(NIGHTS))
    assert log(remote)[0] == "vllm: night 2026-12-04, green" and len(log(remote)) == 4
    assert git(root, "for-each-ref", "refs/heads").decode() == "", "no branch here"


def test_twice_is_once_and_news_of_a_night_take_its_place(root: Path, remote: Path) -> None:
    first = shared.add(root, NIGHTS[0])
    assert shared.add(root, NIGHTS[0]) == first
    changed = night("2026-12-01", "red")
    shared.add(root, changed)
    assert shared.read(root).nights == (changed,) and len(log(remote)) == 2


def test_other_nights_of_that_name_stay(root: Path) -> None:
    """Two workspaces, or two queues, on one day."""
    other = night("2026-12-01", began="2026-12-01T09:00:00+00:00")
    third = night("2026-12-01", queue="demo")
    for each in (NIGHTS[0], other, third, other):
        shared.add(root, each)
    names = [(each.name, each.queue, each.began[11:13]) for each in shared.read(root).nights]
    assert names == [
        ("2026-12-01", "vllm", "01"),
        ("2026-12-01.2", "vllm", "09"),
        ("2026-12-01.3", "demo", "01"),
    ]
    assert [each.name for each in shared.read(root, "demo").nights] == ["2026-12-01.3"]


def moves(monkeypatch: pytest.MonkeyPatch, remote: Path, times: int) -> Iterator[Night]:
    """Before each of the next pushes another workspace adds a night of its own."""
    other, real = clone(remote, "other"), push.push
    waiting = iter(NIGHTS[1:] + [night(f"2026-11-0{day}") for day in range(1, 9)])
    left = times

    def late(*args: object, **options: object) -> None:
        nonlocal left
        if left and args[0] != other:
            left -= 1
            shared.add(other, next(waiting))
        real(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(push, "push", late)
    monkeypatch.setattr(shared.time, "sleep", lambda seconds: None)
    return waiting


def test_where_another_is_first_both_are_there(
    root: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moves(monkeypatch, remote, 3)
    shared.add(root, NIGHTS[0])
    assert shared.read(root).nights == tuple(NIGHTS)


def test_it_does_not_try_for_ever(
    root: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moves(monkeypatch, remote, 9)
    with pytest.raises(Incomplete, match="the branch patchq/nights moved 5 times"):
        shared.add(root, NIGHTS[0])
    assert len(log(remote)) == 5


def test_the_newest_stay(root: Path, remote: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "KEEP", 2)
    for each in (NIGHTS[2], NIGHTS[0], NIGHTS[3]):
        shared.add(root, each)
    assert shared.read(root).nights == (NIGHTS[2], NIGHTS[3])
    assert git(remote, "ls-tree", "-r", "--name-only", shared.BRANCH).decode().split() == [
        "nights/2026-12-03.json",
        "nights/2026-12-04.json",
    ]
    shared.add(root, NIGHTS[1])
    assert shared.read(root).nights == (NIGHTS[2], NIGHTS[3]), "an old one that comes late"


def test_what_is_no_night_is_left_out_and_stays(root: Path, remote: Path) -> None:
    good = form.write(NIGHTS[0])
    odd = json.loads(good) | {"state": "\x1b[1mwonderful"}
    files = {
        "nights/2026-12-01.json": good,
        "nights/2026-12-02.json": json.dumps(odd).encode(),
        "nights/2026-12-03.json": good,
        "nights/\x1b[1m.json": good,
        "nights/2026-12-04.json": b"[" * 100_000,
        "README": b"Nights.\n",
    }
    when = git_date()
    commit = push.commit_files(root, None, files, "by hand", when)
    push.push(root, "origin", commit, shared.BRANCH, expected=None)
    found = shared.read(root)
    assert found.nights == (NIGHTS[0],)
    assert len(found.says) == 4 and "\x1b" not in "".join(found.says)
    assert "2026-12-03.json is left out: it is of another night" in " ".join(found.says)
    shared.add(root, night("2026-12-02"))
    names = git(remote, "ls-tree", "-r", "--name-only", "-z", shared.BRANCH).decode().split("\0")
    assert "nights/2026-12-02.2.json" in names and "README" in names


def git_date() -> object:
    from datetime import UTC, datetime

    return datetime(2026, 12, 1, tzinfo=UTC)


def test_without_the_remote_what_was_seen_last(root: Path, remote: Path) -> None:
    shared.add(root, NIGHTS[0])
    git(root, "fetch", "-q", "origin")
    git(root, "remote", "set-url", "origin", str(remote.parent / "gone.git"))
    found = shared.read(root)
    assert found.nights == (NIGHTS[0],)
    assert found.says[0].startswith("the nights are those that this repository saw last: ")
    with pytest.raises(Incomplete):
        shared.ask(root)
    with pytest.raises(Incomplete):
        shared.add(root, NIGHTS[1])
