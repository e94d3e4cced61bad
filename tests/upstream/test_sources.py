"""The first source that a queue names is its upstream."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from patchq.config import QueueConfig, Source
from patchq.errors import PatchqError
from patchq.upstream import sources
from patchq.upstream.archives import Archives
from patchq.upstream.history import History as GitUpstream
from tests.support.history import History


@pytest.fixture
def history(tmp_path: Path) -> History:
    history = History(tmp_path / "up")
    history.commit("x").write("a", b"1").tag("v1")
    return history.save()


def config(*found: Source) -> QueueConfig:
    return QueueConfig("q", "series", found)


def test_a_path_counts_from_the_project(history: History, tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    for value in ("../up", str(history.path), f"file://{history.path}"):
        found = config(Source("git", value), Source("index", "pkg"))
        with contextlib.closing(sources.open_upstream(found, root)) as upstream:
            assert isinstance(upstream, GitUpstream)
            assert upstream.release("v1").name == "v1"
            assert upstream.as_of().history


def test_an_index_is_not_asked_before_it_must(tmp_path: Path, sealed: Path) -> None:
    found = config(Source("index", "My.Pkg"), Source("git", "../up"))
    with contextlib.closing(sources.open_upstream(found, tmp_path, offline=True)) as upstream:
        assert isinstance(upstream, Archives)
        assert upstream.store.path == sealed / "patchq-cache/stores/index-my-pkg.git"


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    for value in ("../none", "none", "/none", "~/none", "", "."):
        with pytest.raises(PatchqError, match="is not a git repository"):
            sources.open_source(Source("git", value), tmp_path)
