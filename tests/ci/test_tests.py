"""`ci/tests.sh`: what fails beside others gets one more chance, alone and by name."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ONCE = """
from pathlib import Path

import os
import pytest

def test_good():
    pass

@pytest.mark.xdist_group("slow")
def test_busy():
    seen = Path(__file__).with_name("seen")
    first = not seen.exists()
    seen.touch()
    assert not first

{more}
"""


def run(folder: Path, more: str, *args: str) -> subprocess.CompletedProcess[str]:
    (folder / "ci").mkdir()
    shutil.copy(ROOT / "ci/tests.sh", folder / "ci")
    python = folder / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    (folder / "test_it.py").write_text(ONCE.format(more=more), encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n", encoding="utf-8")
    return subprocess.run([folder / "ci/tests.sh", *args], capture_output=True, text=True)


def test_what_passes_alone_is_named_and_does_not_stop_the_others(tmp_path: Path) -> None:
    done = run(tmp_path, "")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 failed, 1 passed" in done.stdout
    end = done.stdout.partition("Failed beside others; now alone:\ntest_it.py::test_busy\n")[2]
    assert "1 passed" in end
    assert end.endswith("mend them.\ntest_it.py::test_busy\n")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("def test_bad(): assert 0", "1 failed, 1 passed"),
        (
            "def test_a(): assert 0\ndef test_b(): assert 0\ndef test_c(): assert 0",
            "4 failed, 1 passed",
        ),
        ("import nothing_of_this_name", "1 error"),
    ],
    ids=["always", "many", "not collected"],
)
def test_what_is_wrong_stays_wrong(tmp_path: Path, more: str, says: str) -> None:
    done = run(tmp_path, more)
    assert done.returncode != 0
    assert f"{says} in " in done.stdout.splitlines()[-1]


def test_arguments_reach_both_runs(tmp_path: Path) -> None:
    done = run(tmp_path, "def test_bad(): assert 0", "-k", "busy or good")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test_bad" not in done.stdout


def test_a_group_stays_together(tmp_path: Path) -> None:
    """It shares a server: pytest 9.2 let pytest-xdist 3.8 start each twice."""
    more = """
@pytest.mark.parametrize("name", [
    pytest.param(f"{group}-{number}", marks=pytest.mark.xdist_group(group))
    for group in "ab" for number in range(20)
])
def test_where(name):
    with open(os.path.dirname(__file__) + "/where", "a") as file:
        file.write(f"{name[0]} {os.environ['PYTEST_XDIST_WORKER']}\\n")
"""
    run(tmp_path, more)
    where = (tmp_path / "where").read_text(encoding="utf-8").splitlines()
    assert len(where) == 40
    assert len(set(where)) == 2
