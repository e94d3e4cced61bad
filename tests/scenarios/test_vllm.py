"""The shipped queue on real vLLM releases, from the package index.

`vllm-0.29.0/` holds the patches as they were first written.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.history import git
from tests.support.vllm import first_series, shipped

pytestmark = pytest.mark.network


def test_one_step_and_four_give_the_same_tree(tmp_path: Path, cache: Path) -> None:
    at_once = first_series(tmp_path / "one", cache)
    step_by_step = first_series(tmp_path / "four", cache)

    one = at_once.sync("0.33.0")
    for release in ("0.30.0", "0.31.0", "0.32.0", "0.33.0"):
        four = step_by_step.sync(release)
        assert four["base"]["to"] == release
        names = [patch["name"] for patch in four["patches"]]
        assert len(names) == 17
        assert {patch["action"] for patch in four["patches"]} == {"keep"}
        checks = [check["name"] for check in four["proof"]["checks"] if check["ok"]]
        assert {f"check of {name}" for name in names} <= set(checks)
        step_by_step.commit()

    assert one["base"]["tree"] == four["base"]["tree"]
    assert at_once.patchq("tree") == step_by_step.patchq("tree")
    for path in (at_once.root / "series").iterdir():
        assert path.read_bytes() == (step_by_step.root / "series" / path.name).read_bytes()


def test_the_shipped_series_holds_on_its_base(tmp_path: Path, cache: Path) -> None:
    """quilt pushes it onto the unpacked archive, git applies it, its own checks pass."""
    queue = shipped(tmp_path / "queue", cache)
    report = json.loads(queue.patchq("check", "--quilt", "--json"))
    assert report["proof"]["ok"], report
    quilt = next(check for check in report["proof"]["checks"] if check["name"] == "quilt")
    assert report["tree"] in quilt["detail"]
    assert queue.patchq("tree").strip() == report["tree"]


def test_the_shipped_series_syncs_and_comes_back(tmp_path: Path, cache: Path) -> None:
    """What `make sync` does: a step (or none, when it was made already), and none after it.

    A release that came after these patches may conflict: then the report is the result.
    """
    queue = shipped(tmp_path / "queue", cache)
    before = {path: path.read_bytes() for path in (queue.root / "series").glob("*.patch")}

    first = json.loads(queue.patchq("sync", "--json", codes=(0, 4)))
    if not first["recorded"]:
        assert git(queue.root, "status", "--porcelain") == b""
        return
    again = json.loads(queue.patchq("sync", "--json"))
    assert not again["changed"]
    assert again["base"]["to"] == first["base"]["to"]
    assert "patchq undo" not in queue.patchq("sync")

    assert json.loads(queue.patchq("check", "--json"))["proof"]["ok"]
    queue.patchq("undo")
    assert git(queue.root, "status", "--porcelain") == b""
    assert {path: path.read_bytes() for path in before} == before
