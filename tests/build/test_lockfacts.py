"""What a runner's lock is made of, and what another input changes in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchq.build import lock as locks
from patchq.build import requirements
from patchq.build.lockfacts import LockReport, patched, report
from patchq.build.overlay import Wanted
from patchq.build.requirements import Locked
from patchq.build.target import TARGETS
from patchq.errors import PatchqError
from patchq.queue.patch import Patch
from patchq.upstream import components
from tests.support.kit import made

ROOT = Path(__file__).resolve().parents[2]
WANTED = Wanted("vllm", "0.32.0", "b" * 40, "c" * 40)
PINS = """
[[component]]
name = "b12x"
index = "b12x"
version = "1.5.1"
why = "it is"

[[model]]
name = "glm"
repository = "o/glm"
revision = "43fe4b2a"
why = "it is"

[[draft]]
name = "drafter"
repository = "o/drafter"
revision = "713226ab"
block_size = 8
why = "it is"

[[template]]
name = "chat"
repository = "o/glm"
revision = "690b7052"
why = "it is"
"""
DIFF = (
    b"diff --git a/b12x/a.py b/b12x/a.py\n--- a/b12x/a.py\n+++ b/b12x/a.py\n@@ -1 +1 @@\n-1\n+2\n"
)


def patch(name: str = "fix", **fields: str) -> Patch:
    return made(1, name, DIFF, **fields)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "upstream").mkdir()
    (tmp_path / "upstream/dependencies.toml").write_text(PINS)
    (tmp_path / "ci/profiles").mkdir(parents=True)
    (tmp_path / "ci/profiles/glm.toml").write_text("context = 800000\n")
    own = tmp_path / "series/b12x"
    own.mkdir(parents=True)
    (own / "0001-fix.patch").write_bytes(patch().text)
    (own / "series").write_text("0001-fix.patch\n")
    relock(tmp_path)
    return tmp_path


def relock(root: Path) -> None:
    pins = components.pinned(root / "upstream")
    for target in TARGETS.values():
        lines = requirements.told(target, WANTED.release, pins, patched(root, pins))
        data = requirements.write(lines, [Locked("regex", "1", ("0" * 64,))])
        (root / "upstream" / requirements.file_name(target.name)).write_bytes(data)


def written(root: Path, *patches: Patch, check: bool = False) -> LockReport:
    found = report(root, WANTED, patches or (patch("series-version"),), check=check)
    if not check:
        (root / "upstream/runner.lock").write_bytes(found.lock.text)
    return found


def test_everything_that_decides_is_in_it(root: Path) -> None:
    head = "4" * 40
    found = written(root, patch("reasoning", pr=f"vllm-project/vllm#52486 @ {head}"))
    facts = dict(found.lock.facts)
    assert facts["tree"] == "c" * 40
    assert facts["base/tree"] == "b" * 40
    assert facts["patch/reasoning/pr/vllm-project/vllm#52486"] == head
    assert facts["draft/drafter/block_size"] == "8"
    assert facts["template/chat/revision"] == "690b7052"
    assert set(facts) >= {
        *("queue", "base/release", "patch/reasoning", "component/b12x/version"),
        *("component/b12x/patch/fix", "model/glm/revision", "profile/glm"),
        *("requirements/spark", "requirements/cuda-x86_64", "requirements/cpu"),
    }
    assert written(root, patch("reasoning"), check=True).differing[0].key.endswith("#52486")


def test_the_lock_that_was_written_is_the_one_that_is_checked(root: Path) -> None:
    assert not report(root, WANTED, [patch()], check=True).present
    written(root)
    again = written(root, check=True)
    assert again.holds and again.exit_code == 0


@pytest.mark.parametrize(
    ("file", "old", "new", "keys"),
    [
        ("upstream/dependencies.toml", "43fe4b2a", "44fe4b2a", ["model/glm/revision"]),
        (
            "upstream/dependencies.toml",
            "block_size = 8",
            "block_size = 6",
            ["draft/drafter/block_size"],
        ),
        ("ci/profiles/glm.toml", "800000", "400000", ["profile/glm"]),
        ("series/b12x/0001-fix.patch", "+2\n", "+3\n", ["component/b12x/patch/fix"]),
        ("upstream/requirements.cpu.lock", "regex==1", "regex==2", ["requirements/cpu"]),
    ],
)
def test_another_input_is_another_runner(
    root: Path, file: str, old: str, new: str, keys: list[str]
) -> None:
    written(root)
    text = (root / file).read_text()
    assert old in text
    (root / file).write_text(text.replace(old, new))
    found = written(root, check=True)
    assert [each.key for each in found.differing] == keys
    assert found.exit_code == 5


def test_a_component_bump_invalidates_the_requirements_too(root: Path) -> None:
    written(root)
    toml = root / "upstream/dependencies.toml"
    toml.write_text(toml.read_text().replace("1.5.1", "1.6.0"))
    found = written(root, check=True)
    assert [each.key for each in found.differing] == ["component/b12x/version"]
    assert [note.partition(" ")[0] for note in found.notes] == [
        "upstream/requirements.spark.lock",
        "upstream/requirements.cuda-x86_64.lock",
    ], "no GPU, no b12x: the one for the CPU holds"
    assert "(built b12x==1.5.1)" in found.notes[0]
    relock(root)
    assert {each.key for each in written(root, check=True).differing} == {
        *("component/b12x/version", "requirements/spark", "requirements/cuda-x86_64"),
    }


def test_a_component_that_gets_its_first_patch_leaves_the_requirements(root: Path) -> None:
    (root / "series/b12x/series").write_text("")
    relock(root)
    written(root)
    (root / "series/b12x/series").write_text("0001-fix.patch\n")
    found = written(root, check=True)
    assert [each.key for each in found.differing] == ["component/b12x/patch/fix"]
    assert "(built b12x==1.5.1)" in found.notes[0]


def test_a_reason_may_be_put_otherwise(root: Path) -> None:
    digest = written(root).lock.digest
    reworded = patch("series-version").header.replace("Subject", "In other words")
    other = patch("series-version").with_header(reworded)
    assert other.text != patch("series-version").text
    assert written(root, other).lock.digest == digest


def test_a_requirements_lock_that_is_missing_is_said(root: Path) -> None:
    (root / "upstream/requirements.cpu.lock").unlink()
    found = written(root)
    assert "there is no upstream/requirements.cpu.lock" in found.notes[0]
    again = written(root, check=True)
    assert not again.differing and again.exit_code == 5


def test_a_damaged_lock_is_told_by_a_check_and_replaced_otherwise(root: Path) -> None:
    (root / "upstream/runner.lock").write_bytes(b"<<<<<<< ours\n")
    with pytest.raises(PatchqError, match="is damaged"):
        written(root, check=True)
    written(root)
    assert not written(root, check=True).differing


def test_without_a_lock_the_check_fails(root: Path) -> None:
    found = report(root, WANTED, [patch()], check=True)
    assert not found.present and found.exit_code == 5


def test_locks_of_other_machines_are_the_same(root: Path, tmp_path: Path) -> None:
    first = written(root).lock.text
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for name in ("upstream", "ci", "series"):
        (root / name).rename(moved / name)
    assert written(moved).lock.text == first
    assert str(root).encode() not in first


def test_a_project_without_components_locks_as_well(tmp_path: Path) -> None:
    (tmp_path / "upstream").mkdir()
    found = report(tmp_path, WANTED, [patch()], check=False)
    assert not found.notes
    assert locks.parse(found.lock.text, "it") == found.lock
