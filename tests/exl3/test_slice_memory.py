"""Memory does not grow with the shards, also not that of mapped pages."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from patchq.exl3.layout import LAYOUTS
from tests.bench import targets
from tests.bench.measure import cost, hermetic

SHAPE = targets.Shape(1, 40, 2048, 2048, 4, 1, 1 << 20)
"""One shard of 253 MB, in tensors of 2 MB."""


@pytest.mark.parametrize("layout", LAYOUTS)
def test_peak(tmp_path: Path, layout: str) -> None:
    targets.write(tmp_path / "src", SHAPE, full=False)
    words = [sys.executable, "-m", "patchq.cli.main", "slice", "run", "src", "dst", "--tp", "2"]
    env = hermetic(tmp_path / "home") | {"PYTHONPATH": str(Path(__file__).parents[2])}
    spent = cost([*words, "--layout", layout, "--jobs", "1"], cwd=tmp_path, env=env)
    assert spent.largest < 100, f"{spent.largest:.0f} MB"
