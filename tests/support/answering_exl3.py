"""The answering model as a real EXL3 checkpoint, whole and cut for two ranks: 8 bits, mul1.

Linear layers and the head are quantized, embeddings and norms are not. The encoder turns a weight
as the format has it (patchq/exl3/decode.py), and lays each tile into a trellis: of 8 bits, a window
is two symbols, and a path through 256 states of one symbol each, whose values come near the tile's.
A beam of a few paths does; the last steps look at all states, for a tile's end is its beginning.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from patchq.exl3 import codebook, decode
from patchq.exl3.families import load
from patchq.exl3.slice import run
from tests.support import exl3, trellises
from tests.support.exl3 import Array, Layer, encode_checkpoint
from tests.support.shards import BFLOAT16, read_folder
from tests.support.trellises import pack, sylvester

BITS, CODEBOOK = 8, "mul1"
_BLOCK, _TILE, _STATES = 128, 16, 256
_BEAM = 4
_WIDEST = 3.0
"""Of the codebook's values, which go to 3.4: beyond, few lie near each other."""
_LEAST = 2.0**-14
"""The scale of what is all zero."""
_AT_ONCE = 512
"""Tiles: what is compared at a time then stays in a processor's cache."""
_FIRST = 0
"""The symbol that every tile ends with, and so begins behind."""


@dataclass(frozen=True)
class Answering:
    """Folders that the patched `vllm serve` takes."""

    root: Path

    @property
    def plain(self) -> Path:
        return self.root / "plain"

    @property
    def cut(self) -> Path:
        """For two ranks, as `patchq slice run` writes it."""
        return self.root / "tp2"


def quantized(source: Path) -> Answering:
    """The model in the folder `source` in its EXL3 forms; made beside it where it is not there."""
    digest = hashlib.sha256()
    for script in (__file__, str(exl3.__file__), str(trellises.__file__)):
        digest.update(Path(script).read_bytes())
    for part in sorted(Path(decode.__file__).parent.glob("*.*")):
        digest.update(part.read_bytes())
    folder = source.with_name(f"{source.name}-exl3-{digest.hexdigest()[:16]}")
    with FileLock(source.with_name("exl3.lock")):
        if not folder.is_dir():
            unfinished = source.with_name("exl3-unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            make(source, Answering(unfinished))
            unfinished.rename(folder)
    return Answering(folder)


def make(source: Path, made: Answering) -> None:
    """Both forms of the model in `source`."""
    weights = read_folder(source)
    layers = [
        Layer(name.removesuffix(".weight"), array.shape[1], array.shape[0], BITS, CODEBOOK)
        for name, array in weights.items()
        if name.endswith("_proj.weight") or name == "lm_head.weight"
    ]

    def fill(tensors: dict[str, Array]) -> None:
        rng = np.random.default_rng(0)
        rest = dict(weights)
        for layer in layers:
            dense = widened(rest.pop(f"{layer.name}.weight")).T
            for field, array in encoded(dense, rng).items():
                tensors[f"{layer.name}.{field}"] = array
        tensors.update(rest)

    encode_checkpoint(made.plain, layers, plain=(), spoil=fill)
    written = json.loads((made.plain / "config.json").read_text(encoding="utf-8"))
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    config["quantization_config"] = written["quantization_config"]
    for path in source.iterdir():
        if path.suffix != ".safetensors":
            shutil.copy(path, made.plain)
    text = json.dumps(config, indent=2) + "\n"
    (made.plain / "config.json").write_text(text, encoding="utf-8")
    run(made.plain, made.cut, 2, load(), sync=False)


def widened(array: Array) -> Array:
    """float64, also of bfloat16."""
    if array.dtype == BFLOAT16:
        array = (array.view("<u2").astype("<u4") << 16).view("<f4")
    return array.astype(np.float64)


def encoded(weight: Array, rng: np.random.Generator) -> Mapping[str, Any]:
    """`weight` [K, N], both multiples of 128, as trellis, suh and svh: near it, not equal."""
    inputs, outputs = weight.shape
    # With random signs and turned, no weight stands out of its block.
    suh, svh = (rng.choice((-1.0, 1.0), size) for size in weight.shape)
    blocks = (suh[:, None] * weight * svh).reshape(
        inputs // _BLOCK, _BLOCK, outputs // _BLOCK, _BLOCK
    )
    turn = sylvester() / np.sqrt(_BLOCK)
    blocks = np.einsum("ab,ibjc,cd->iajd", turn, blocks, turn, optimize=True)
    scale = np.abs(blocks).max((0, 1, 3)) / _WIDEST
    scale = np.where(scale > 0, scale, _LEAST).astype("<f2").astype(np.float64)
    inner = (blocks / scale[:, None]).reshape(inputs // _TILE, _TILE, outputs // _TILE, _TILE)
    symbols = _symbols(inner.transpose(0, 2, 1, 3)[..., _ROWS, _COLUMNS].reshape(-1, 256))
    shape = (inputs // _TILE, outputs // _TILE, 256)
    return {
        "trellis": pack(symbols.reshape(shape), BITS),
        "suh": suh.astype("<f2"),
        "svh": (svh * np.repeat(scale, _BLOCK)).astype("<f2"),
    }


# Where value t of a tile stands in it.
_LANE, _PART = np.divmod(np.arange(256), 8)
_ROWS = 2 * (_LANE % 4) + np.array([0, 1, 8, 9])[_PART % 4]
_COLUMNS = _LANE // 4 + 8 * (_PART // 4)


def _symbols(wanted: Array) -> Array:
    """Of each tile's 256 values [tiles, 256] the symbols whose windows decode to near them."""
    # Much of the model is zero. All such tiles are alike, and so are their errors: they add up.
    found = np.empty(wanted.shape, np.int64)
    found[:] = _paths(np.zeros((1, wanted.shape[1]), np.float32), _STATES)
    (busy,) = wanted.any(1).nonzero()
    for first in range(0, len(busy), _AT_ONCE):
        part = busy[first : first + _AT_ONCE]
        found[part] = _paths(wanted[part].astype(np.float32))
    return found


def _paths(wanted: Array, beam: int = _BEAM) -> Array:
    """The same, for as many tiles as are looked at together."""
    tiles = np.arange(len(wanted))[:, None]
    # Row: the symbol before; column: the symbol that is laid.
    values = codebook.table(CODEBOOK).astype(np.float32).reshape(_STATES, _STATES)
    kept = np.full((len(wanted), 1), _FIRST)  # the paths' last symbols
    costs = np.zeros((len(wanted), 1), np.float32)
    steps = []  # of each value: the symbols laid, and the path each goes on from
    for place in range(255):
        best = np.full((len(wanted), _STATES), np.inf, np.float32)
        source = np.zeros((len(wanted), _STATES), np.uint8)
        for path in range(kept.shape[1]):
            cost = values[kept[:, path]]
            cost -= wanted[:, place, None]
            cost *= cost
            cost += costs[:, path, None]
            better = cost < best
            np.copyto(best, cost, where=better)
            source[better] = path
        # At the end every state is kept: the one symbol that is left is not free.
        count = beam if place < 254 else _STATES
        kept = np.argpartition(best, count - 1)[:, :count]
        costs = best[tiles, kept]
        steps.append((kept, source[tiles, kept]))
    costs = costs + (values[kept, _FIRST] - wanted[:, 255, None]) ** 2
    path = costs.argmin(1)
    symbols = np.full(wanted.shape, _FIRST)
    for place in range(254, -1, -1):
        laid, came_from = steps[place]
        symbols[:, place] = laid[tiles[:, 0], path]
        path = came_from[tiles[:, 0], path]
    return symbols
