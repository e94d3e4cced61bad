"""The EXL3 layers of the series against patchq's own decoder, and against exllamav3's results.

tests/runner/exl3_layers.py computes, in the runner's Python; what it has to find is computed here
in numpy, by code that has nothing in common with the patches.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from patchq.exl3 import decode
from patchq.exl3.families import load
from patchq.exl3.layout import LAYOUTS
from patchq.exl3.slice import run
from tests.support import runner
from tests.support.exl3 import (
    REFERENCE,
    Array,
    Layer,
    encode_checkpoint,
    moe_layers,
    needs_reference,
    varied,
)
from tests.support.runner_server import environment
from tests.support.shards import read_safetensors, write_safetensors
from tests.support.trellises import CODEBOOKS

SCRIPT = Path(__file__).with_name("exl3_layers.py")
# A float16 has 11 bits; the largest of a product is some times its usual size.
WITHIN = 2**-11

Found = dict[str, Any]


def every_kind() -> list[Layer]:
    """Each codebook in each width, one with packed signs, one with a bias."""
    layers = [
        Layer(f"model.layers.0.{book}_{bits}", 256, 384, bits, book)
        for book in CODEBOOKS
        for bits in range(1, 9)
    ]
    return [
        *layers,
        Layer("model.layers.0.wide", 128, 1152, legacy=True),
        Layer("model.layers.0.biased", 256, 128, bias=True),
    ]


def _fields(tensors: dict[str, Array], name: str) -> dict[str, Array]:
    return {key.rpartition(".")[2]: t for key, t in tensors.items() if key.startswith(f"{name}.")}


def _expect(folder: Path) -> None:
    rng = np.random.default_rng(1)
    tensors = encode_checkpoint(folder / "model", every_kind(), plain=())
    expected: dict[str, Array] = {}
    for layer in every_kind():
        linear = decode.linear(layer.name, _fields(tensors, layer.name), layer.codebook)
        x = rng.normal(0, 1, (3, layer.k)).astype("<f4")
        expected[f"{layer.name}.x"] = x
        expected[f"{layer.name}.y"] = (x @ decode.weight(linear).astype("<f4")).astype("<f4")
    write_safetensors(folder / "expected.safetensors", expected)


def _cut(folder: Path) -> None:
    """Each layout for each rank; of `per-rank` the other rank's file cannot be opened."""
    source = folder / "moe"
    for layout in LAYOUTS:
        run(source, folder / "cut", 2, load(), layout=layout, sync=False)
        for rank in range(2):
            own = folder / layout / str(rank)
            shutil.copytree(folder / "cut", own)
            for other in own.glob(f"*.rank{1 - rank}.safetensors"):
                other.unlink()
        shutil.rmtree(folder / "cut")


def _exllamav3(folder: Path) -> None:
    for path in sorted(REFERENCE.glob("*bpw.safetensors")):
        name = path.name.removesuffix(".safetensors")
        model = folder / name / "model"
        model.mkdir(parents=True)
        shutil.copy(path, model)
        given = read_safetensors(REFERENCE / f"{name}.reference.safetensors")
        expected = {key: t for key, t in given.items() if key.endswith((".x", ".y"))}
        write_safetensors(folder / name / "expected.safetensors", expected)


@pytest.fixture(scope="module")
def found(release: str, tmp_path_factory: pytest.TempPathFactory) -> Found:
    folder = tmp_path_factory.mktemp("layers")
    _expect(folder)
    encode_checkpoint(folder / "moe", varied(moe_layers(experts=4), bits=[3, 4, 5]), shards=2)
    _cut(folder)
    if REFERENCE.is_dir():
        _exllamav3(folder / "reference")
    patched = runner.patched(release)
    done = subprocess.run(
        [patched.python, SCRIPT, folder],
        cwd=folder,
        env=environment(patched, folder, folder),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    result: Found = json.loads(line.removeprefix("RESULT "))
    result["sizes"] = {
        layout: sum(path.stat().st_size for path in (folder / layout / "0").glob("*.safetensors"))
        for layout in LAYOUTS
    }
    return result


def test_every_codebook_and_width_is_what_patchq_decodes(found: Found) -> None:
    assert set(found["layers"]) == {"kept", "on use", "dense"}
    assert max(found["layers"].values()) < WITHIN, found["layers"]


@needs_reference
def test_products_are_within_float16_of_exllamav3(found: Found) -> None:
    assert len(found["exllamav3"]) == 4
    for name, ways in found["exllamav3"].items():
        assert max(ways.values()) < 2 * WITHIN, name


def test_experts_are_routed_computed_and_summed(found: Found) -> None:
    assert found["experts"] < 1e-5


def test_a_rank_reads_its_own_files_alone(found: Found) -> None:
    for rank, read in enumerate(found["reading"]["per-rank"]):
        assert any(f".rank{rank}." in name for name in read["files"])
        assert not any(f".rank{1 - rank}." in name for name in read["files"])
    assert found["sizes"]["per-rank"] < 0.6 * found["sizes"]["shared"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_rank_takes_its_own_slices_alone(found: Found, layout: str) -> None:
    one, other = (read["tensors"] for read in found["reading"][layout])
    assert one == other  # the same names and sizes, without a rank in them
    assert sum(name.endswith(".trellis") for name in one) == 12
    assert not any(".rank" in name for name in one)
