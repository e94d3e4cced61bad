"""EXL3's trellis: 256 overlapping 16-bit windows in 256 * bits bits, one ring for each 16x16 tile.

The layout is exllamav3 0.0.43's (`pack_trellis_kernel` in pack.cu, `dq_dispatch` in exl3_dq.cuh,
`tensor_core_perm` in quantize.py), described here and written anew:

A trellis is int16 [K/16, N/16, 16*bits]; entry [i, j] holds rows 16i..16i+15 and columns
16j..16j+15 of the weight [K, N], and nothing of any other tile. Its int16 values, read as
little-endian uint32 words, each word most significant bit first, are a ring of 256*bits bits.
Value t (0..255) is the window of 16 bits that *ends* before bit (t+1)*bits: so a value shares
16 - bits of its bits with the values before it, and the first ones look back into the ring's end.
A window is not a value yet: `codebook` says which one it stands for.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from patchq.exl3.model import TILE

Words = NDArray[np.uint16]

VALUES = TILE * TILE
WINDOW = 16
BITS = range(1, 9)


@cache
def order() -> NDArray[np.intp]:
    """[256]: the place r*16 + c in the tile where value t lands.

    That is how the tensor cores of a GPU want a 16x16 operand: value t = 8*lane + j belongs to
    one of 32 lanes, which holds two pairs of rows 8 apart, in two columns 8 apart.
    """
    lane, j = np.divmod(np.arange(VALUES), 8)
    row = 2 * (lane % 4) + j % 2 + 8 * (j // 2 % 2)
    column = lane // 4 + 8 * (j // 4)
    place: NDArray[np.intp] = (row * TILE + column).astype(np.intp)
    return place


def bits_of(shape: tuple[int, ...]) -> int:
    """Bits per weight of a trellis of this shape. Raises ValueError for any other shape."""
    if len(shape) != 3 or shape[2] % TILE or shape[2] // TILE not in BITS:
        msg = f"a trellis is [K/16, N/16, 16*bits] with 1 to 8 bits, not {list(shape)}"
        raise ValueError(msg)
    return shape[2] // TILE


@cache
def _gather(bits: int) -> tuple[NDArray[np.intp], NDArray[np.uint64]]:
    """Where the window of each place r*16 + c of a tile lies: its last word, and the shift."""
    end = np.empty(VALUES, np.int64)
    end[order()] = np.arange(1, VALUES + 1) * bits
    word = (end - 1) // 32
    return word.astype(np.intp), ((word + 1) * 32 - end).astype(np.uint64)


def windows(trellis: NDArray[np.int16] | Words) -> Words:
    """The windows of every tile, in the order of the weight's rows and columns.

    `trellis` [..., 16*bits], 16-bit integers of either sign. Returns uint16 [..., 16, 16], row
    and column of the tile last.
    """
    bits = trellis.shape[-1] // TILE
    word, shift = _gather(bits)
    words = np.ascontiguousarray(trellis).view("<u4").astype(np.uint64)
    # Two words hold every window: the one that it ends in, and the one before it in the ring.
    pairs = np.roll(words, 1, axis=-1) << np.uint64(32) | words
    found = (np.take(pairs, word, axis=-1) >> shift).astype(np.uint16)
    return found.reshape(*trellis.shape[:-1], TILE, TILE)
