"""A look at the tracked pull requests: the best means there are, and all that is missing said."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from patchq.config import QueueConfig, Source
from patchq.errors import PatchqError
from patchq.forge.model import Seen
from patchq.upstream.look import find, look
from patchq.upstream.pulls import Pull, record
from tests.support.forge.fixtures import forge, forge_server  # noqa: F401
from tests.support.forge.repo import Repo
from tests.support.forge.server import Forge

MONTH = timedelta(days=30)
NOW = "2026-11-30T00:00:00Z"


class Tracked:
    """What a command does: look, and record what was seen."""

    def __init__(self, forge: Forge, repo: Repo, cache: Path) -> None:  # noqa: F811
        self.config = QueueConfig(
            "engine", "series", (Source("index", "engine"),),
            github=repo.name, github_api=forge.api, git=forge.git(repo),
        )  # fmt: skip
        self.cache = cache
        self.pulls: dict[str, Pull] = {}

    def look(self, *keys: str, **options: Any) -> Seen:
        seen = look(self.config, keys or self.pulls, known=self.pulls, cache=self.cache, **options)
        news = {key: record(self.pulls.get(key), pull, NOW) for key, pull in seen.pulls.items()}
        self.pulls = {**self.pulls, **news}
        return seen

    @property
    def states(self) -> Mapping[str, str]:
        return {key: pull.state for key, pull in self.pulls.items()}


@pytest.fixture
def repo(forge: Forge) -> Repo:  # noqa: F811
    # The lists without a token go by time: what happens here happens now.
    forge.clock.now = datetime.now(UTC) - timedelta(days=400)
    return forge.repo("acme/engine")


@pytest.fixture
def tracked(forge: Forge, repo: Repo, tmp_path: Path) -> Tracked:  # noqa: F811
    return Tracked(forge, repo, tmp_path / "cache")


@pytest.fixture
def with_token(forge: Forge, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setenv("GITHUB_TOKEN", forge.token)


def hundred(repo: Repo) -> list[str]:
    return [repo.pull(f"P{n}").key for n in range(100)]


@pytest.mark.usefixtures("with_token")
def test_a_hundred_with_a_token(forge: Forge, repo: Repo, tracked: Tracked) -> None:  # noqa: F811
    keys = hundred(repo)
    seen = tracked.look(*keys)
    assert forge.count() <= 5
    assert (len(seen.pulls), seen.missing, seen.means) == (100, (), "graphql")


def test_a_hundred_without_a_token(forge: Forge, repo: Repo, tracked: Tracked) -> None:  # noqa: F811
    keys = hundred(repo)
    tracked.look(*keys)
    forge.asked.clear()
    for n in range(300):
        repo.pull(f"of no interest {n}")
    forge.clock.now = datetime.now(UTC)
    repo.pulls[7].closes()
    repo.pulls[8].lands_by_squash()
    seen = tracked.look()
    assert forge.count() == 1, "at most 3 where few changed"
    assert not seen.missing and len(seen.pulls) == 100
    assert {key: state for key, state in tracked.states.items() if state != "open"} == {
        "acme/engine#7": "closed",
        "acme/engine#8": "merged",
    }


def test_a_look_at_some_does_not_hide_news_of_others(repo: Repo, tracked: Tracked) -> None:
    """What changed before a look at others only is still news for the next look at all."""
    keys = [repo.pull(f"P{n}").key for n in range(3)]
    tracked.look(*keys)
    looks = tracked.cache / "forge/looks.json"
    now = datetime.now(UTC)
    looks.write_text(looks.read_text().replace(str(now.date()), str((now - MONTH).date())))
    repo.clock.now = now - timedelta(days=20)
    repo.pulls[1].closes()
    for n in range(120):
        repo.pull(f"of no interest {n}")
    tracked.look(keys[2])
    tracked.look()
    assert tracked.states[keys[0]] == "closed"


def test_one_that_is_new_is_asked_for_itself(repo: Repo, tracked: Tracked) -> None:
    old = repo.pull("Old").key
    for n in range(120):
        repo.pull(f"P{n}")
    tracked.look("acme/engine#121")
    seen = tracked.look("acme/engine#121", old)
    assert tracked.states == {"acme/engine#121": "open", old: "open"} and not seen.missing


@pytest.mark.usefixtures("with_token")
def test_several_upstreams(forge: Forge, repo: Repo, tracked: Tracked) -> None:  # noqa: F811
    other = forge.repo("acme/kernels")
    keys = [repo.pull("One").key, other.pull("Two").key]
    assert tracked.look(*keys).pulls.keys() == set(keys)
    assert forge.count() == 1


def test_a_refused_token_leaves_what_anyone_may_ask(
    forge: Forge,  # noqa: F811
    repo: Repo,
    tracked: Tracked,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GH_TOKEN", "ghp_expired")
    key = repo.pull("One").key
    seen = tracked.look(key)
    assert tracked.states == {key: "open"} and seen.means == "rest"
    (says,) = seen.missing
    assert "refuses the token in GH_TOKEN" in says and "ghp_expired" not in repr(seen)


def test_git_alone(forge: Forge, repo: Repo, tracked: Tracked) -> None:  # noqa: F811
    """The hour's requests are spent: heads still come, and states stay as they were recorded."""
    one, two = repo.pull("One").write("a", b"1\n"), repo.pull("Two").write("b", b"1\n")
    tracked.look(one.key, two.key)
    one.push("More").write("a", b"2\n")
    forge.limits[None] = 0
    seen = tracked.look(one.key, two.key, "acme/engine#99")
    assert seen.means == "git"
    assert tracked.pulls[one.key].head_sha == one.sha
    assert (tracked.pulls[one.key].state, tracked.pulls[one.key].title) == ("open", "One")
    first, second, third = seen.missing
    assert "limits requests" in first
    assert second == f"acme/engine#99 is not at {forge.git(repo)}"
    assert third == "2 pull requests were seen by git alone, which knows the heads and no state"


def test_nothing_is_reached(forge: Forge, repo: Repo, tracked: Tracked) -> None:  # noqa: F811
    key = repo.pull("One").key
    tracked.look(key)
    before = dict(tracked.pulls)
    forge.limits[None] = 0
    forge.fails("git", 503, b"", times=10)
    seen = tracked.look(key)
    assert len(seen.missing) == 2 and not seen.missing[1].startswith("1 pull")
    assert tracked.pulls == before


def test_git_may_be_forbidden(forge: Forge, repo: Repo, tracked: Tracked) -> None:  # noqa: F811
    """A sync must not fetch the whole history of vLLM because the 60 requests are spent."""
    key = repo.pull("One").key
    forge.limits[None] = 0
    seen = tracked.look(key, git=False)
    assert not seen.pulls and len(seen.missing) == 1
    assert not [each for each in forge.asked if each.path.endswith("git-upload-pack")]


@pytest.mark.usefixtures("with_token")
def test_offline_says_how_old_it_is(forge: Forge, repo: Repo, tracked: Tracked) -> None:  # noqa: F811
    keys = [repo.pull("One").key]
    assert tracked.look(*keys, offline=True).as_of == datetime.fromtimestamp(0, UTC)
    at = tracked.look(*keys).as_of
    forge.asked.clear()
    seen = tracked.look(*keys, offline=True)
    assert not forge.asked and not seen.pulls and not seen.missing
    assert abs(seen.as_of - at) < timedelta(seconds=2)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"127": 3}', '{"127.0.0.1 acme/engine": "x"}'])
def test_a_damaged_cache_is_no_cache(repo: Repo, tracked: Tracked, text: str) -> None:
    (tracked.cache / "forge").mkdir(parents=True)
    (tracked.cache / "forge/looks.json").write_text(text)
    key = repo.pull("One").key
    assert not tracked.look(key).missing and tracked.states == {key: "open"}


def test_a_cache_that_cannot_be_written(repo: Repo, tracked: Tracked) -> None:
    tracked.cache.write_text("a file")
    key = repo.pull("One").key
    assert not tracked.look(key).missing and tracked.states == {key: "open"}


def test_find(forge: Forge, repo: Repo, tracked: Tracked) -> None:  # noqa: F811
    repo.pull("Faster gear")
    repo.pull("Slower")
    assert list(find(tracked.config, ["gear"]).pulls) == ["acme/engine#1"]
    nowhere = dataclasses.replace(tracked.config, github=None)
    assert list(find(nowhere, ["gear"], repo="acme/engine").pulls) == ["acme/engine#1"]
    with pytest.raises(PatchqError, match=r"upstream/engine\.toml names no repository"):
        find(nowhere, ["gear"])
