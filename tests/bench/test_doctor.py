"""The benchmark of the doctor runs, on checkpoints small enough for a test."""

from __future__ import annotations

from pathlib import Path

from tests.bench import targets
from tests.bench.doctor import measure
from tests.bench.measure import hermetic
from tests.bench.test_targets import SMALL

ROOT = Path(__file__).resolve().parents[2]


def test_all_three_rows(tmp_path: Path) -> None:
    env = hermetic(tmp_path / "home") | {"PYTHONPATH": str(ROOT)}
    (tmp_path / "work").mkdir()
    text = measure(tmp_path / "work", env, 1, SMALL)
    rows = [line.split(" | ")[:2] for line in text.splitlines()[2:] if line]
    assert rows == [["| plain", "5"], ["| shared", "0"], ["| per-rank", "0"]]


def test_a_sparse_cut_is_what_the_slicer_makes(tmp_path: Path) -> None:
    from patchq.exl3.families import load
    from patchq.exl3.slice import run

    targets.write(tmp_path / "src", SMALL, full=True)
    run(tmp_path / "src", tmp_path / "real", 2, load(), layout="per-rank")
    targets.write_cut(tmp_path / "sparse", tmp_path / "src", 2, "per-rank")
    real = {path.name: path.stat().st_size for path in (tmp_path / "real").iterdir()}
    assert real == {path.name: path.stat().st_size for path in (tmp_path / "sparse").iterdir()}
    for name in ("rank-slice-manifest.json", "config.json", "model.safetensors.index.json"):
        assert (tmp_path / "sparse" / name).read_bytes() == (tmp_path / "real" / name).read_bytes()
