"""Trellises made and read without patchq, and the matrix that turns weights.

Any bits are a valid trellis: a tile is a ring of 256 symbols of `bits` bits, and value t is the
window of the 16 bits that end with symbol t. `pack` lays symbols into the words of a tile, and
`unpacked` reads the windows of symbols without packing them: slow, and independent of patchq.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

CODEBOOKS = ("mcg", "mul1", "3inst")


def pack(symbols: Array, bits: int) -> Array:
    """int16 [..., 16*bits] of the 256 symbols [..., 256] of each tile, each below 2^bits."""
    shifts = np.arange(bits - 1, -1, -1)
    stream = ((symbols[..., None] >> shifts) & 1).astype(np.uint8)
    octets = np.packbits(stream.reshape(*symbols.shape[:-1], 256 * bits), axis=-1)
    # Most significant bit first within little-endian words.
    return octets.view(">u4").astype("<u4").view("<i2")


def unpacked(symbols: Sequence[int], bits: int) -> list[int]:
    """The windows of one tile, by its symbols: one long integer, a value at a time."""
    ring = 0
    for symbol in symbols:
        ring = ring << bits | int(symbol)
    size = 256 * bits
    twice = ring << size | ring
    return [(twice >> (size - (t + 1) * bits)) & 0xFFFF for t in range(256)]


def sylvester() -> Array:
    """float64 [128, 128]: the Hadamard matrix, not scaled."""
    places = np.arange(128)
    meet = places[:, None] & places
    return 1.0 - 2.0 * (np.bitwise_count(meet) % 2)


def same(one: Array, other: Array) -> bool:
    """Bit for bit."""
    return (
        one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    )
