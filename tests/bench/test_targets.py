"""The benchmark's checkpoints are checkpoints: the slicer takes the small ones."""

from __future__ import annotations

from pathlib import Path

from patchq.exl3.checkpoint import read
from patchq.exl3.families import load
from patchq.exl3.plan import plan
from patchq.exl3.slice import run
from tests.bench import targets

SMALL = targets.Shape(layers=2, experts=3, hidden=256, inner=256, bits=4, shards=3, plain=1600)


def test_full(tmp_path: Path) -> None:
    size = targets.write(tmp_path / "src", SMALL, full=True)
    assert size == sum(tensor.nbytes for tensor in read(tmp_path / "src").tensors.values())
    assert run(tmp_path / "src", tmp_path / "dst", 2, load()).summary.routed == 18


def test_sparse(tmp_path: Path) -> None:
    targets.write(tmp_path / "src", SMALL, full=False)
    found = read(tmp_path / "src")
    assert "tensor_storage" not in found.quantization
    assert not plan(found, 2, load()).refused
