"""What is newer, what it would bring or break; and the list itself."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.carry.deps.conftest import TOML
from tests.support.inside import call
from tests.support.kit import bare_repository
from tests.support.parts import Index, Parts

ROOT = Path(__file__).resolve().parents[3]


def test_a_newer_release_with_its_date_and_what_it_means(parts: Parts) -> None:
    told = parts.json("outdated")
    assert told["schema"] == "patchq.deps-outdated/1"
    kernels, dsl = told["parts"]
    assert (kernels["pin"], kernels["date"]) == ("1.7", "2026-09-01")
    assert kernels["newer"] == [{"version": "1.8", "date": "2026-10-02"}]
    assert kernels["brings"] == ["asks for dsl>=4.7.0 (before: >=4.6.0)"]
    assert [each["package"] for each in kernels["breaks"]] == ["dsl"]
    assert dsl["breaks"] == []
    said = parts.call("deps", "outdated").out
    assert said.startswith("kernels 1.7 (2026-09-01) -> 1.8 (2026-10-02)\n    breaks dsl: ")
    assert "dsl 4.6.0 (2026-09-01) -> 4.7.0 (2026-10-01)\n    breaks nothing" in said


def test_a_release_that_was_yanked_is_said(index: Index, parts: Parts) -> None:
    index.release("kernels-python", "1.6", ["dsl"], yanked="wrong results")
    parts.list(TOML.replace('"1.7"', '"1.6"'))
    assert parts.json("outdated")["parts"][0]["says"] == "1.6 was yanked"


def test_the_index_that_is_gone_is_said_and_the_rest_is_there(parts: Parts) -> None:
    parts.call("deps", "check")
    parts.index.site.stop()
    told = parts.json("outdated", code=6)
    assert [each["name"] for each in told["parts"]] == ["kernels", "dsl"]
    assert told["missing"]
    assert parts.json("check", "--offline")["ok"] is True


def test_a_part_that_fits_no_hardware(index: Index, parts: Parts) -> None:
    index.release("dsl", "4.6.1", tag="cp312-cp312-win_amd64", sdist=False)
    parts.list(TOML.replace('"4.6.0"', '"4.6.1"'))
    (conflict,) = parts.json("check", code=5)["conflicts"]
    assert conflict["package"] == "dsl"
    assert conflict["why"].startswith("none of its files fits aarch64, CPython 3.12")


def test_a_python_that_is_too_old(index: Index, parts: Parts) -> None:
    index.release("dsl", "4.6.1", python=">=3.13", sdist=False)
    parts.list(TOML.replace('"4.6.0"', '"4.6.1"'))
    said = parts.call("deps", "check", code=5).out
    assert "python: dsl 4.6.1 needs >=3.13; [hardware] has another" in said


def test_without_hardware_nothing_is_checked(parts: Parts) -> None:
    parts.list(TOML, hardware="")
    said = parts.call("deps", "check", code=1).err
    assert "does not say what hardware the runner is for" in said
    assert parts.json("list")["hardware"] is None


def test_the_list(parts: Parts) -> None:
    told = parts.json("list")
    assert (told["schema"], told["queue"], told["base"]) == ("patchq.deps-list/1", "engine", "1.0")
    assert told["parts"][0] == {
        "kind": "component",
        "name": "kernels",
        "pin": "1.7",
        "origin": "index kernels-python",
        "why": "attention",
        "sha256": None,
        "patches": [],
        "requires": [],
        "detail": {},
    }
    assert "kernels" in parts.call("deps", "list").out
    parts.file.unlink()
    assert parts.call("deps", "list").out == "upstream/dependencies.toml lists nothing.\n"


@pytest.mark.network
def test_what_this_repository_ships_fits(tmp_path: Path) -> None:
    root = bare_repository(tmp_path / "queue")
    for name in ("series", "upstream"):
        shutil.copytree(ROOT / name, root / name)
    told = call(root, "deps", "check", "--json").json
    assert told["ok"] is True
    assert told["missing"] == []
