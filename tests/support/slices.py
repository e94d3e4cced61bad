"""Sliced checkpoints: made, spoiled, and what a verification says of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from patchq.exl3.families import load
from patchq.exl3.layout import LAYOUTS
from patchq.exl3.model import Tensor
from patchq.exl3.slice import run
from patchq.exl3.sliced import read
from patchq.exl3.verify import Verified
from tests.support.exl3 import Layer, dense_layers, encode_checkpoint, moe_layers, varied
from tests.support.shards import Array, read_safetensors, write_safetensors

CONFIG, QUANTIZATION = "config.json", "quantization_config.json"
INDEX, MANIFEST = "model.safetensors.index.json", "rank-slice-manifest.json"
EXPERT = "model.layers.1.mlp.experts.0"
LAST = "lm_head"
"""The last layer of `various`, in the second of two shards."""


def various() -> list[Layer]:
    """Layers with a bit of everything."""
    layers = moe_layers(experts=3, shared_experts=True) + dense_layers(head=256)
    return varied(layers, bits=[3, 4, 5], bias=lambda layer: layer.name.endswith("o_proj"))


def make_both(folder: Path) -> Path:
    """`folder`/src in two shards, `shared` and `per-rank` cut from it for two ranks."""
    encode_checkpoint(folder / "src", various(), shards=2)
    for layout in LAYOUTS:
        run(folder / "src", folder / layout, 2, load(), layout=layout)
    return folder


def problems(found: Verified) -> list[str]:
    return [problem for check in found.checks for problem in check.problems]


def failed(found: Verified) -> list[str]:
    """The names of the checks that failed."""
    return [check.name for check in found.checks if not check.ok]


def place_of(folder: Path, name: str) -> tuple[Path, Tensor]:
    tensor = read(folder).checkpoint.tensors[name]
    return folder / tensor.file, tensor


def put(folder: Path, name: str, offset: int, data: bytes) -> None:
    path, tensor = place_of(folder, name)
    with path.open("r+b") as file:
        file.seek(tensor.start + offset)
        file.write(data)


def flip(folder: Path, name: str, offset: int) -> None:
    path, tensor = place_of(folder, name)
    with path.open("rb") as file:
        file.seek(tensor.start + offset)
        (value,) = file.read(1)
    put(folder, name, offset, bytes([value ^ 1]))


def rewrite(folder: Path, change: Callable[[dict[str, Array]], None], file: int = 2) -> None:
    """Change the tensors of a shard, and the index with it."""
    path = folder / f"model-0000{file}-of-00002.safetensors"
    tensors = read_safetensors(path)
    change(tensors)
    write_safetensors(path, tensors)
    index = json.loads((folder / INDEX).read_text())
    places = {name: place for name, place in index["weight_map"].items() if place != path.name}
    index["weight_map"] = places | dict.fromkeys(tensors, path.name)
    (folder / INDEX).write_text(json.dumps(index))


def edit(folder: Path, file: str, change: Callable[[Any], None]) -> None:
    document = json.loads((folder / file).read_text())
    change(document)
    (folder / file).write_text(json.dumps(document))
