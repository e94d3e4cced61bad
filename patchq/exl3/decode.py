"""The weights of an EXL3 layer, in numpy.

Written from the format as exllamav3 0.0.43 reads it (`LinearEXL3.get_weight_tensor`,
`LinearEXL3.unpack_bf`), for a layer with K inputs, N outputs and the weight W [K, N]:

    W = diag(suh) * H * inner * H * diag(svh)

H is the Hadamard transform in blocks of 128 (see `hadamard`), `inner` the decoded trellis (see
`trellis` and `codebook`). Both H keep to their blocks, so a 128x128 block of W is made of 8x8 tiles
of the trellis, 128 of suh and 128 of svh, and of nothing else. That is why a cut at a multiple of
128 loses nothing, and why a cut inside of a block, though its tiles are whole, decodes to something
else: the turn would mix other rows or columns than those that were turned when it was made.

Everything up to the scales is exact in float64 (see `codebook.table`), and the result is rounded
to float16 at the end. exllamav3 rounds to float16 after each of four steps: its reconstruction
differs from this one by at most one unit in the last place of the largest weight of a layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from patchq.errors import PatchqError
from patchq.exl3 import codebook as codebooks
from patchq.exl3.hadamard import turn
from patchq.exl3.model import BLOCK, TILE
from patchq.exl3.trellis import bits_of, windows

Halves = NDArray[np.float16]
Shorts = NDArray[np.int16]
Tensors = Mapping[str, NDArray[Any]]

# Columns decoded at a time: a strip of 128 rows and its copies then stay in a processor's cache.
STRIP = 8 * BLOCK


@dataclass(frozen=True, eq=False)
class Linear:
    """One quantized layer: `trellis` int16 [K/16, N/16, 16*bits], `suh` float16 [K], `svh` [N]."""

    trellis: Shorts
    suh: Halves
    svh: Halves
    codebook: str

    @property
    def shape(self) -> tuple[int, int]:
        """K inputs and N outputs."""
        return self.trellis.shape[0] * TILE, self.trellis.shape[1] * TILE


def linear(name: str, fields: Tensors, codebook: str) -> Linear:
    """The layer `name`, of its stored tensors by field: `trellis`, `suh` or `su`, `svh` or `sv`.

    Raises PatchqError, naming the layer, if one is missing, or does not fit the others.
    """
    try:
        trellis = fields["trellis"]
        bits_of(trellis.shape)
        inputs, outputs = trellis.shape[0] * TILE, trellis.shape[1] * TILE
        if inputs % BLOCK or outputs % BLOCK:
            msg = f"{inputs} x {outputs} is not made of blocks of {BLOCK} x {BLOCK}"
            raise ValueError(msg)
        if trellis.dtype != np.int16:
            msg = f"its trellis is {trellis.dtype}, not int16"
            raise ValueError(msg)
        suh, svh = _scale(fields, "suh", "su", inputs), _scale(fields, "svh", "sv", outputs)
    except ValueError as error:
        raise PatchqError(
            f"{name} is not an EXL3 layer: {error}.", "Take the checkpoint anew from its source."
        ) from None
    except KeyError as error:
        raise PatchqError(
            f"{name} has no {error.args[0]}.", "Take the checkpoint anew from its source."
        ) from None
    return Linear(trellis, suh, svh, codebook)


def _scale(fields: Tensors, field: str, legacy: str, size: int) -> Halves:
    scale = fields.get(field)
    if scale is None:
        if legacy not in fields:
            raise KeyError(field)
        scale = unpack_signs(fields[legacy])
    if scale.dtype != np.float16 or scale.shape != (size,):
        msg = f"its {field} is {scale.dtype} {list(scale.shape)}, not float16 [{size}]"
        raise ValueError(msg)
    return scale


def unpack_signs(packed: NDArray[Any]) -> Halves:
    """The scales that the legacy form packs: int16 [n/16] to float16 [n], a set bit being -1.

    The lowest bit of each integer comes first (`LinearEXL3.unpack_bf`).
    """
    if packed.dtype != np.int16 or packed.ndim != 1:
        msg = f"packed signs are int16 in one dimension, not {packed.dtype} {list(packed.shape)}"
        raise ValueError(msg)
    signs = np.unpackbits(packed.astype("<i2").view(np.uint8), bitorder="little")
    return np.where(signs, np.float16(-1), np.float16(1))


@cache
def _values(codebook: str) -> NDArray[np.float32]:
    """The codebook as float32, which holds every float16 and is cheaper to widen further."""
    return codebooks.table(codebook).astype(np.float32)


def inner(layer: Linear) -> Halves:
    """float16 [K, N]: the decoded trellis, before the transforms and the scales."""
    found = codebooks.table(layer.codebook)[windows(layer.trellis)]
    return np.ascontiguousarray(found.swapaxes(1, 2)).reshape(layer.shape)


def weight(layer: Linear) -> Halves:
    """float16 [K, N]: the weight that exllamav3 multiplies its input by, from the right."""
    out = np.empty(layer.shape, np.float16)
    for row, column, block in strips(layer):
        out[row : row + BLOCK, column : column + block.shape[1]] = block
    return out


def strips(layer: Linear, width: int = STRIP) -> Iterator[tuple[int, int, Halves]]:
    """The weight by strips: first row, first column, float16 [128, up to `width`].

    `width` is a multiple of 128. It changes no value, nor does the order; memory is that of a
    strip, whatever the layer's size.
    """
    assert width % BLOCK == 0
    inputs, outputs = layer.shape
    for row in range(0, inputs, BLOCK):
        for column in range(0, outputs, width):
            yield row, column, strip(layer, row, column, min(column + width, outputs))


def strip(layer: Linear, row: int, first: int, last: int) -> Halves:
    """float16 [128, last - first]: rows `row` to `row` + 127, columns `first` to `last` - 1.

    All three are multiples of 128.
    """
    tiles = layer.trellis[row // TILE : (row + BLOCK) // TILE, first // TILE : last // TILE]
    found = np.take(_values(layer.codebook), windows(tiles))
    # [8, 8*n, 16, 16] to [n, 8, 16, 8, 16]: block, then column and row within the block, so that
    # each of the two turns goes along the axis before the last.
    split = found.reshape(BLOCK // TILE, -1, BLOCK // TILE, TILE, TILE).transpose(1, 2, 4, 0, 3)
    blocks = turn(split.astype(np.float64, order="C").reshape(-1, BLOCK, BLOCK))
    blocks = turn(np.ascontiguousarray(blocks.swapaxes(1, 2)))
    rows = blocks.swapaxes(0, 1).reshape(BLOCK, last - first)
    with np.errstate(over="ignore", invalid="ignore"):
        rows *= layer.suh[row : row + BLOCK, None].astype(np.float64) / BLOCK
        rows *= layer.svh[first:last].astype(np.float64)
        return rows.astype(np.float16)
