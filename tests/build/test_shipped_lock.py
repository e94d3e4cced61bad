"""The locks that this repository ships are of what it ships, and can be installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from patchq.build import lockfacts, requirements
from patchq.build.overlay import Wanted
from patchq.build.target import TARGETS, Target
from patchq.carry.workspace import read_queue
from patchq.config import find_project
from patchq.upstream import pipconf

ROOT = Path(__file__).resolve().parents[2]


def test_the_lock_is_of_the_shipped_inputs() -> None:
    """Where this fails, `patchq lock --check` names what moved and `patchq lock` writes it."""
    queue = read_queue(find_project(ROOT), None)
    state = queue.state
    wanted = Wanted(queue.config.name, state.release, state.tree, state.runner_tree)
    found = lockfacts.report(ROOT, wanted, queue.series.applied, check=True)
    assert not found.differing
    assert not found.notes
    assert found.present


@pytest.mark.parametrize("target", TARGETS)
def test_it_names_no_index_and_no_other_build(target: str) -> None:
    """A local version (2.13.0+cpu) is of an index that those who install may not have."""
    path = ROOT / "upstream" / requirements.file_name(target)
    found = requirements.parse(path.read_bytes(), path.name)
    assert len(found.packages) > 100
    assert not [each for each in found.packages if "+" in each.version]
    assert b"://" not in path.read_bytes()


@pytest.mark.network
@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: target.name)
def test_the_index_has_all_of_it(target: Target, tmp_path: Path) -> None:
    """As those who install do: every package, by its hash, as a wheel for the target's machine."""
    path = ROOT / "upstream" / requirements.file_name(target.name)
    glibc = target.glibc.replace(".", "_")
    done = subprocess.run(
        [
            *(Path(sys.executable).with_name("uv"), "pip", "install", "--no-config", "--dry-run"),
            *(
                "--no-deps",
                "--require-hashes",
                "--only-binary",
                ":all:",
                "--target",
                tmp_path / "site",
            ),
            *("--python-version", target.python, "--cache-dir", tmp_path / "cache"),
            *("--python-platform", f"{target.machine}-manylinux_{glibc}"),
            *("--default-index", pipconf.default_index(), "--requirements", path),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
