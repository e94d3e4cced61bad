"""What a decoder is made of: windows, codebooks and the transform, against slow arithmetic."""

from __future__ import annotations

import struct
from fractions import Fraction

import numpy as np
import pytest

from patchq.exl3.codebook import table
from patchq.exl3.hadamard import turn
from patchq.exl3.trellis import bits_of, order, windows
from tests.support.trellises import CODEBOOKS, pack, same, sylvester, unpacked

# The trellis.


@pytest.mark.parametrize("bits", range(1, 9))
def test_windows_are_those_of_the_symbols(bits: int) -> None:
    for symbols in np.random.default_rng(bits).integers(0, 1 << bits, (20, 256)):
        found = windows(pack(symbols, bits)).reshape(256)
        assert found[order()].tolist() == unpacked(symbols.tolist(), bits)


@pytest.mark.parametrize("bits", range(1, 9))
def test_every_bit_is_in_its_place(bits: int) -> None:
    """One symbol of ones: the windows that end with it or look back to it, over the ring's end."""
    for place in range(256):
        symbols = [0] * 256
        symbols[place] = (1 << bits) - 1
        found = windows(pack(np.array(symbols), bits)).reshape(256)[order()]
        assert found.tolist() == unpacked(symbols, bits)


@pytest.mark.parametrize("bits", range(1, 9))
def test_tiles_do_not_touch_each_other(bits: int) -> None:
    symbols = np.random.default_rng(bits).integers(0, 1 << bits, (3, 5, 256))
    packed = pack(symbols, bits)
    assert packed.shape == (3, 5, 16 * bits) and packed.dtype == np.int16
    alone = [[windows(packed[i, j]) for j in range(5)] for i in range(3)]
    assert same(windows(packed), np.array(alone))


def test_the_order_is_that_of_tensor_cores() -> None:
    assert sorted(order()) == list(range(256))
    for lane in range(32):
        low = 2 * (lane % 4)
        rows, columns = [low, low + 1, low + 8, low + 9], [lane // 4, lane // 4 + 8]
        for j in range(8):
            assert divmod(order()[8 * lane + j], 16) == (rows[j % 4], columns[j // 4])


@pytest.mark.parametrize("shape", [(8, 8), (8, 8, 0), (8, 8, 24), (8, 8, 144), (2, 8, 8, 64)])
def test_other_shapes_are_no_trellis(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="a trellis is"):
        bits_of(shape)


# The codebooks.


def half(bits: int) -> Fraction:
    return Fraction(struct.unpack("<e", struct.pack("<H", bits & 0xFFFF))[0])


def slow_value(window: int, codebook: str) -> float:
    """By the words of the format's description, with exact numbers, rounded once."""
    if codebook == "mul1":
        x = window * 0x83DCD12D % 2**32
        total = sum(x.to_bytes(4, "little")) + 0x6400
        exact = half(total) * half(0x1EEE) + half(0xC931)
    else:
        x = window * (0xCBAC1FED if codebook == "mcg" else 89226354)
        x = (x + (0 if codebook == "mcg" else 64248484)) % 2**32
        x = (x & 0x8FFF8FFF) ^ 0x3B603B60
        exact = half(x) + half(x >> 16)
    (rounded,) = struct.unpack("<e", struct.pack("<e", float(exact)))
    return float(rounded)


@pytest.mark.parametrize("codebook", CODEBOOKS)
def test_codebooks_by_slow_arithmetic(codebook: str) -> None:
    values = table(codebook)
    assert values.shape == (65536,) and values.dtype == np.float16
    places = [*range(0, 65536, 13), 65535]
    assert values[places].tolist() == [slow_value(place, codebook) for place in places]


@pytest.mark.parametrize("codebook", CODEBOOKS)
def test_codebooks_leave_room_for_exact_sums(codebook: str) -> None:
    """Multiples of 2^-18 below 4: the sum of 128 x 128 of them has 34 bits, float64 has 53."""
    values = table(codebook).astype(float)
    assert np.abs(values).max() < 4
    assert np.all(values * 2**18 == np.rint(values * 2**18))
    assert abs(values.mean()) < 0.02 and 0.9 < values.std() < 1.4


# The transform.


def test_the_transform_is_sylvesters_matrix() -> None:
    values = np.random.default_rng(1).integers(-1000, 1000, (3, 128, 7)).astype(float)
    assert same(turn(values.copy()), sylvester() @ values)
    assert same(turn(turn(values.copy())), 128 * values)
