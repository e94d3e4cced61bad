"""EXL3's three codebooks: which number each of the 65536 windows stands for.

No table is stored in a checkpoint: a window is hashed by a few integer instructions into
something that looks like a sample of a bell curve (exllamav3 0.0.43, `decode_3inst` in
codebook.cuh). All 65536 results fit in a small table, which is what is kept here.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from patchq.exl3.model import DEFAULT_CODEBOOK, MARKERS

Halves = NDArray[np.float16]
_Hashed = NDArray[np.uint32]


@cache
def table(codebook: str) -> Halves:
    """float16 [65536]: the value of each window in `mcg`, `mul1` or `3inst`, to the last bit.

    Every value is a multiple of 2^-18 and below 4 in magnitude. Not to be written to.
    """
    window = np.arange(1 << 16, dtype=np.uint32)
    if codebook == "mul1":
        values = _byte_sum(window * np.uint32(MARKERS[codebook]))
    elif codebook == "mcg":
        values = _two_halves(window * np.uint32(MARKERS[codebook]))
    else:
        assert codebook == DEFAULT_CODEBOOK
        values = _two_halves(window * np.uint32(89226354) + np.uint32(64248484))
    values.setflags(write=False)
    return values


def _two_halves(hashed: _Hashed) -> Halves:
    """The sum, in float16, of two float16 of random sign and mantissa between 1/8 and 2."""
    pair = (hashed & np.uint32(0x8FFF8FFF)) ^ np.uint32(0x3B603B60)
    halves = pair.astype("<u4").view("<f2").reshape(-1, 2)
    values: Halves = halves[:, 0] + halves[:, 1]
    return values


def _byte_sum(hashed: _Hashed) -> Halves:
    """The sum of the four bytes, brought to mean 0 and deviation 1 by one fused multiply-add.

    0x6400 is 1024 in float16, where the last bit counts one: adding an integer below 1024 to the
    bits adds it to the number. In float64 product and sum are exact, so that the rounding at
    the end is the only one, as in the fused instruction.
    """
    total = hashed.astype("<u4").view(np.uint8).reshape(-1, 4).sum(axis=1, dtype=np.uint16)
    number = (total + np.uint16(0x6400)).view(np.float16).astype(np.float64)
    scale, offset = np.array([0x1EEE, 0xC931], np.uint16).view(np.float16).astype(np.float64)
    values: Halves = (number * scale + offset).astype(np.float16)
    return values
