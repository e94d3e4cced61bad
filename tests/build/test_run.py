"""`patchq build` from the index to the record beside the wheel."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from patchq.build.overlay import Wanted
from patchq.build.run import build, verify
from patchq.build.target import find
from patchq.errors import PatchqError
from tests.build.wheels import NAME, make
from tests.support.kit import Kit
from tests.upstream.conftest import Site, entry

SPARK = find("spark")


@pytest.fixture
def kit(tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kit]:
    made = Kit(tmp_path / "kit")
    made.history.commit().write("vllm/a.py", b"1\n").tag("v1")
    made.history.branch("p1", at="v1").commit().write("vllm/a.py", b"2\n")
    wheel = make(tmp_path / NAME, {"vllm/a.py": b"1\n"}).read_bytes()
    site.add(f"/files/{NAME}", wheel)
    site.add_package("vllm", entry(NAME, wheel))
    monkeypatch.setenv("PIP_INDEX_URL", f"{site.url}/simple")
    yield made
    made.close()


def wanted(kit: Kit) -> Wanted:
    return Wanted("vllm", "1.0", kit.tree("v1"), kit.tree("p1"))


def test_a_build_and_its_record(kit: Kit, tmp_path: Path, site: Site) -> None:
    out, cache = tmp_path / "out", tmp_path / "cache"
    report = build(kit.store, wanted(kit), SPARK, kit.series("v1", "p1"), out, cache)
    told = json.loads((out / "build.json").read_bytes())
    assert told["runner"]["tree"] == kit.tree("p1")
    assert [each["name"] for each in told["runner"]["patches"]] == ["p1"]
    assert told["inputs"] == [{"name": NAME, "sha256": report.source.sha256}]
    assert told["outputs"][0]["name"] == report.built.path.name
    assert sorted(path.name for path in out.iterdir()) == sorted(
        ["build.cdx.json", "build.intoto.json", "build.json", report.built.path.name]
    )
    first = (out / "build.json").read_bytes()
    build(kit.store, wanted(kit), SPARK, kit.series("v1", "p1"), out, cache, offline=True)
    assert (out / "build.json").read_bytes() == first
    assert site.asked(f"/files/{NAME}") == 1, "downloaded once"


def test_verify_builds_it_again(kit: Kit, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    made = build(kit.store, wanted(kit), SPARK, (), tmp_path / "out", cache).built.path
    report = verify(kit.store, wanted(kit), SPARK, (), made, cache)
    assert report.same and report.exit_code == 0
    made.write_bytes(made.read_bytes() + b"\0")
    other = verify(kit.store, wanted(kit), SPARK, (), made, cache)
    assert other.same is False and other.exit_code == 5
    with pytest.raises(PatchqError, match="there is no file"):
        verify(kit.store, wanted(kit), SPARK, (), tmp_path / "none.whl", cache)


def test_offline_without_the_wheel(kit: Kit, tmp_path: Path, site: Site) -> None:
    cache = tmp_path / "cache"
    with pytest.raises(PatchqError):
        build(kit.store, wanted(kit), SPARK, (), tmp_path / "out", cache, offline=True)
    assert not (tmp_path / "out").exists()


def test_a_wheel_with_a_wrong_hash(kit: Kit, tmp_path: Path, site: Site) -> None:
    site.add(f"/files/{NAME}", b"other bytes")
    with pytest.raises(PatchqError):
        build(kit.store, wanted(kit), SPARK, (), tmp_path / "out", tmp_path / "cache")
    assert not (tmp_path / "out").exists()
