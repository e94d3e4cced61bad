"""Cuts made by hand: slices that concatenate to the source, and decode to it or do not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from patchq.exl3.verify import verify
from tests.support.exl3 import Layer, encode_checkpoint
from tests.support.shards import Array, write_safetensors
from tests.support.slices import EXPERT, QUANTIZATION, edit, problems


def hand_cut(folder: Path, layer: Layer, at: int, *, listed: bool) -> None:
    """`folder`/src with one layer, and `folder`/dst with it cut by columns at `at`."""
    tensors = encode_checkpoint(folder / "src", [layer], plain=())
    cut: dict[str, Array] = {}
    for name, array in tensors.items():
        module, _, field = name.rpartition(".")
        if module != layer.name:
            cut[name] = array
            continue
        for rank, (low, high) in enumerate(((0, at), (at, layer.n))):
            own = array
            if field == "trellis":
                own = np.ascontiguousarray(array[:, low // 16 : high // 16])
            elif field == "svh":
                own = array[low:high]
            cut[f"{module}.rank{rank}.{field}"] = own
    shutil.copytree(folder / "src", folder / "dst")
    write_safetensors(folder / "dst" / "model.safetensors", cut)
    entry = {"split": "column", "ranges": [[[0, at]], [[at, layer.n]]], "modules": [layer.name]}
    entry |= {"in_features": layer.k, "out_features": layer.n, "bits": layer.bits}
    entry |= {"codebook": layer.codebook, "stacked_experts": None}
    document: dict[str, Any] = {"rank_sliced": {"tp": 2}}
    if listed:
        document["rank_sliced_modules"] = [entry]
    (folder / "dst" / QUANTIZATION).write_text(json.dumps(document))


@pytest.mark.parametrize("listed", [False, True])
def test_the_work_of_another_tool(tmp_path: Path, listed: bool) -> None:
    """No manifest, perhaps no list of cuts: the family's rule says which cut it is."""
    hand_cut(tmp_path, Layer(f"{EXPERT}.gate_proj", 256, 512), 256, listed=listed)
    found = verify(tmp_path / "dst", tmp_path / "src", full=True)
    assert problems(found) == []
    assert verify(tmp_path / "dst").ok


def test_a_cut_inside_of_a_block(tmp_path: Path) -> None:
    """192 and 192 of 384: they concatenate to the source, and do not decode to it."""
    hand_cut(tmp_path, Layer(f"{EXPERT}.gate_proj", 256, 384), 192, listed=True)
    said = problems(verify(tmp_path / "dst", tmp_path / "src"))
    assert any("cut at 0 to 192, not at multiples of 128" in problem for problem in said)
    assert any("256 x 192: not multiples of 128" in problem for problem in said)


def test_a_list_that_leaves_features_out(tmp_path: Path) -> None:
    hand_cut(tmp_path, Layer(f"{EXPERT}.gate_proj", 256, 512), 256, listed=True)

    def shorten(document: Any) -> None:
        document["rank_sliced_modules"][0]["ranges"][1] = [[256, 384]]

    edit(tmp_path / "dst", QUANTIZATION, shorten)
    assert any(
        "no rank has its features from 384 on" in each
        for each in problems(verify(tmp_path / "dst"))
    )


def test_a_source_of_another_size(tmp_path: Path) -> None:
    """The result agrees with itself; the source has less, or other layers."""
    name = f"{EXPERT}.gate_proj"
    hand_cut(tmp_path, Layer(name, 256, 512), 256, listed=True)
    encode_checkpoint(tmp_path / "less", [Layer(name, 256, 256)], plain=())
    encode_checkpoint(tmp_path / "other", [Layer(f"{EXPERT}.up_proj", 256, 512)], plain=())
    said = problems(verify(tmp_path / "dst", tmp_path / "less"))
    assert f"{name} is 256 x 256 in the source, rank_sliced_modules says 256 x 512" in said
    said = problems(verify(tmp_path / "dst", tmp_path / "other"))
    assert f"{name} is in the result only" in said
    assert f"{EXPERT}.up_proj is in the source only" in said
