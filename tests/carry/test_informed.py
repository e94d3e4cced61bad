"""What a sync says of the history that it had, or had not."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from patchq.carry.fold import Carry, Release
from patchq.carry.informed import told
from patchq.carry.ranges import Unreached
from patchq.upstream.releases import AsOf
from tests.support.history import git
from tests.support.inside import Small

HERE = Release("v1", "a" * 40, "b" * 40)
AS_OF = AsOf("git", datetime(2026, 10, 1, tzinfo=UTC), notes=("one note",))


@pytest.mark.parametrize(
    ("history", "has", "complete", "notes"),
    [
        (None, False, True, ()),
        ("", True, True, ()),
        ("no tag", False, True, ("no history: no tag",)),
        (Unreached("no net"), False, False, ("no history: no net",)),
    ],
)
def test_how_much_was_seen(
    history: str | None, has: bool, complete: bool, notes: tuple[str, ...]
) -> None:
    found = told(AS_OF, Carry(HERE, HERE, (), "", "", history))
    assert (found.history, found.complete) == (has, complete)
    assert found.notes == ("one note", *notes)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    monkeypatch.setenv("PATCHQ_CACHE", str(tmp_path / "cache"))
    return Small(tmp_path / "small").filled()


def test_a_conflict_names_its_cause(small: Small) -> None:
    said = small.call("sync", "--onto", "v3", "--dry-run", "--json", code=4)
    (conflict,) = said.json["patches"][1]["conflicts"]
    commit = git(small.upstream.path, "rev-parse", "v3").decode().strip()
    assert conflict["cause"] == {"commit": commit, "pr": None, "title": "change"}
    assert conflict["causes"][0]["author"] == "Ada Tester"
    assert said.json["upstream"]["history"] is True
    told_ = [one for one in said.json["patches"][1]["evidence"] if one["signal"] == "cause"]
    assert [one["ref"] for one in told_] == [commit]
    shown = small.call("sync", "--onto", "v3", "--dry-run", code=4).out
    assert f"since {commit[:10]} change, by Ada Tester, 2025-06-15" in shown.replace("\n", " ")


def test_a_shallow_clone_has_no_history(small: Small, tmp_path: Path) -> None:
    """The releases are there, the commits between them are not: said, and the rest is done."""
    source = small.upstream.path.as_uri()
    clone = tmp_path / "shallow.git"
    git(tmp_path, "clone", "-q", "--bare", "--depth=1", "--branch=v1", source, str(clone))
    git(clone, "fetch", "-q", "--depth=1", "origin", "+refs/tags/v3:refs/tags/v3")
    settings = small.root / "upstream" / "demo.toml"
    text = settings.read_text().replace(str(small.upstream.path), str(clone))
    settings.write_text(text)
    said = small.call("sync", "--onto", "v3", "--dry-run", "--json", code=4)
    assert said.json["upstream"]["history"] is False
    assert said.json["upstream"]["complete"] is True
    assert any("no history: git log failed" in note for note in said.json["upstream"]["notes"])
    evidence = said.json["patches"][1]["evidence"]
    assert [one["detail"] for one in evidence if one["signal"] == "cause"] == [
        "no history: cause not searched"
    ]
