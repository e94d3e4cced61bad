"""How far a base is behind, by the index and by a history; what is not known is said."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from patchq.config import QueueConfig, Source
from patchq.upstream.drift import Newer, drift
from tests.support.history import History, git
from tests.support.parts import Index
from tests.upstream.conftest import Site


@pytest.fixture
def index(site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Index]:
    monkeypatch.setenv("PIP_INDEX_URL", f"{site.url}/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PATCHQ_CACHE", str(tmp_path / "cache"))
    return Index(site)


@pytest.fixture
def history(tmp_path: Path) -> History:
    made = History(tmp_path / "engine.git")
    for number in (1, 2):
        made.commit().write("a.txt", b"%d\n" % number).tag(f"v1.{number}")
    made.commit().write("a.txt", b"3\n")
    return made.save()


def config(*sources: Source) -> QueueConfig:
    return QueueConfig("engine", "series", sources)


INDEX = Source("index", "engine")


def test_releases_since_the_base(index: Index, tmp_path: Path) -> None:
    for version, more in {
        "0.9": {},
        "1.0": {"date": "2026-08-01"},
        "1.10": {"date": "2026-10-01"},
        "1.2": {"date": "2026-09-01"},
        "1.3rc1": {},
        "1.4": {"yanked": "broken"},
    }.items():
        index.release("engine", version, **more)  # type: ignore[arg-type]
    found = drift(config(INDEX), tmp_path, "1.0", "")
    assert found.newer == (Newer("1.2", "2026-09-01"), Newer("1.10", "2026-10-01"))
    assert (found.base, found.date, found.commits, found.reached) == ("1.0", "2026-08-01", (), True)
    assert found.missing == (
        "no history: commits are not counted (`patchq upstream add-git URL` brings it)",
    )
    assert found.as_of is not None and abs((datetime.now(UTC) - found.as_of).total_seconds()) < 600
    newest = drift(config(INDEX), tmp_path, "1.10", "", offline=True)
    assert newest.newer == () and newest.as_of == found.as_of


def test_a_history_beside_the_index_counts_commits(
    index: Index, history: History, tmp_path: Path
) -> None:
    index.release("engine", "1.1", date="2026-08-01")
    index.release("engine", "1.2", date="2026-09-01")
    found = drift(config(INDEX, Source("git", str(history.path))), tmp_path, "1.1", "")
    assert found.newer == (Newer("1.2", "2026-09-01"),), "of releases the index knows"
    assert found.commits == (("v1.2", 1), ("main", 2))
    assert found.missing == ()
    absent = drift(config(INDEX, Source("git", str(history.path))), tmp_path, "1.5", "")
    assert absent.commits == () and "has no tag of 1.5" in absent.missing[0]


def test_a_fetched_history_has_a_main_branch(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATCHQ_CACHE", str(tmp_path / "cache"))
    queue = config(Source("git", history.path.as_uri()))
    base = git(history.path, "rev-parse", "v1.1").decode().strip()
    found = drift(queue, tmp_path, "v1.1", base)
    assert [each.name for each in found.newer or ()] == ["v1.2"]
    assert found.commits == (("v1.2", 1), ("main", 2))
    assert found.date == "2025-06-15" and found.missing == () and found.reached
    history.path.rename(tmp_path / "away.git")
    later = drift(queue, tmp_path, "v1.1", base, offline=True)
    assert later.commits == found.commits, "as it was fetched"
    assert "was not fetched" in later.missing[0] and later.reached, "nobody was to be asked"
    lost = drift(queue, tmp_path, "v1.1", base)
    assert lost.commits == found.commits and not lost.reached


def test_nobody_answers(index: Index, site: Site, tmp_path: Path) -> None:
    site.stop()
    found = drift(config(INDEX), tmp_path, "1.0", "")
    assert found.newer is None and not found.reached and len(found.missing) == 2
    asleep = drift(config(INDEX), tmp_path, "1.0", "", offline=True)
    assert asleep.newer is None and asleep.reached
