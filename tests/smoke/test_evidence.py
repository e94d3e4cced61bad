"""Evidence on disk: written at once, the one before kept, and nothing else taken for it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from patchq.errors import PatchqError
from patchq.smoke import evidence
from patchq.smoke.evidence import Kind
from patchq.smoke.identity import as_json
from tests.smoke.test_identity import SPARKS

SMOKE = {"schema": "patchq.smoke/1", "probes": []}


def test_it_is_kept_under_the_lock_and_the_one_before_beside_it(tmp_path: Path) -> None:
    path = evidence.keep(tmp_path, SPARKS, "smoke", SMOKE)
    assert path == tmp_path / "build/evidence/0123456789abcdef/smoke.json"
    assert evidence.there(tmp_path) == ["0123456789abcdef"]
    first = path.read_bytes()
    evidence.keep(tmp_path, SPARKS, "smoke", {**SMOKE, "seed": 2})
    assert sorted(each.name for each in path.parent.iterdir()) == ["smoke.json", "smoke.json.1"]
    assert path.with_name("smoke.json.1").read_bytes() == first
    found = evidence.load(path.parent, "smoke")
    assert found is not None and found.runner == SPARKS and found.value["seed"] == 2
    assert found.when is not None and found.when.tzinfo is UTC


def test_one_that_was_asked_by_its_address_is_bound_to_nothing(tmp_path: Path) -> None:
    (tmp_path / "smoke.json").write_text(json.dumps(evidence.bound(None, SMOKE)), "utf-8")
    found = evidence.load(tmp_path, "smoke")
    assert found is not None and found.runner is None


def test_a_time_of_another_zone_is_the_same_time(tmp_path: Path) -> None:
    told = {**SMOKE, "runner": as_json(SPARKS), "when": "2026-11-30T23:00:00+02:00"}
    (tmp_path / "smoke.json").write_text(json.dumps(told), encoding="utf-8")
    found = evidence.load(tmp_path, "smoke")
    assert found is not None and found.when == datetime(2026, 11, 30, 21, tzinfo=UTC)


def test_there_may_be_none(tmp_path: Path) -> None:
    assert evidence.load(tmp_path, "bench") is None
    assert evidence.load(tmp_path / "nowhere", "bench") is None
    assert evidence.there(tmp_path) == []


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "no JSON"),
        (b'{"schema": "patchq.smoke/1"', "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[]", "schema"),
        (b'{"schema": "patchq.bench/1"}', "schema"),
        (b'{"schema": "patchq.smoke/2"}', "schema"),
        (b'{"schema": "patchq.smoke/1", "runner": {}}', "bound to"),
        (b'{"schema": "patchq.smoke/1", "when": "yesterday"}', "bound to"),
        (b'{"schema": "patchq.smoke/1", "when": "2026-11-30T21:00:00"}', "no time zone"),
        (b'{"schema": "patchq.smoke/1", "when": 7}', "bound to"),
        (b'{"schema": "patchq.smoke/1", "when": "0001-01-01T00:00:00+14:00"}', "bound to"),
    ],
)
def test_what_is_none_is_named(tmp_path: Path, data: bytes, says: str) -> None:
    (tmp_path / "smoke.json").write_bytes(data)
    with pytest.raises(PatchqError, match=r"smoke\.json is no evidence") as fault:
        evidence.load(tmp_path, "smoke")
    assert says in fault.value.message


@pytest.mark.parametrize(("kind", "value"), [("bench", SMOKE), ("smoke", {})])
def test_only_its_own_kind_is_kept(tmp_path: Path, kind: Kind, value: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="no evidence of the kind"):
        evidence.keep(tmp_path, SPARKS, kind, value)
    assert not list(tmp_path.iterdir())


def test_a_folder_is_of_a_digest_only(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no digest"):
        evidence.folder(tmp_path, "../../somewhere")
