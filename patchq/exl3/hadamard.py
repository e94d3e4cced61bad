"""The 128-wide Hadamard transform that EXL3 turns weights by, in blocks along either axis.

H is Sylvester's matrix of 128 rows: entry [i, j] is the parity of i & j, as a sign; it is
symmetric, and exllamav3 0.0.43 scales it by 1/sqrt(128) (`preapply_had_l`, `preapply_had_r` in
quantize.py, `had_hf_r_128` in hadamard.cu). Here it is not scaled: turned on both sides, the
factor is 1/128, which costs no rounding, where 1/sqrt(128) does.

Only sums and differences in one fixed order, each element within its own block of 128: the result
of a block does not depend on what stands beside it, nor on the machine, as a product by BLAS may.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from patchq.exl3.model import BLOCK

Floats = NDArray[np.float64]


def turn(values: Floats) -> Floats:
    """H times `values` [..., 128, m] along the axis before the last one, in place; returns it.

    `values` must be C-contiguous. In float64 the result is exact as long as the values are
    multiples of one power of two and their sums stay below 2^53 of it.
    """
    *outer, rows, width = values.shape
    assert rows == BLOCK and values.flags.c_contiguous
    half = 1
    while half < BLOCK:
        pairs = values.reshape(*outer, BLOCK // (2 * half), 2, half * width)
        upper, lower = pairs[..., 0, :], pairs[..., 1, :]
        total = upper + lower
        np.subtract(upper, lower, out=lower)
        upper[...] = total
        half *= 2
    return values
