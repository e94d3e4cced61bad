"""The decoder: against exllamav3's own results, against slow arithmetic, and against cuts."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.errors import PatchqError
from patchq.exl3 import decode
from patchq.exl3.decode import Linear, linear, weight
from patchq.exl3.hadamard import turn
from tests.support.exl3 import REFERENCE, Layer, layer_tensors, needs_reference
from tests.support.shards import Array, read_safetensors
from tests.support.trellises import CODEBOOKS, same, sylvester


def fields_of(tensors: dict[str, Array], name: str) -> dict[str, Array]:
    start = f"{name}."
    return {key.removeprefix(start): tensors[key] for key in tensors if key.startswith(start)}


def layer_of(fields: dict[str, Array], name: str = "layer") -> Linear:
    found = [marker for marker in ("mcg", "mul1") if marker in fields]
    return linear(name, fields, found[0] if found else "3inst")


def made(k: int = 256, n: int = 384, bits: int = 4, codebook: str = "mcg", seed: int = 0) -> Linear:
    tensors = layer_tensors(Layer("x", k, n, bits, codebook), np.random.default_rng(seed))
    return layer_of(fields_of(tensors, "x"))


# exllamav3's own tensors.

FILES = ("default-2bpw", "mcg-4bpw", "mcg-6bpw", "mul1-3bpw")


@needs_reference
def test_every_reference_file_is_tested() -> None:
    given = {path.name.removesuffix(".reference.safetensors") for path in reference_files()}
    assert given == set(FILES)


def reference_files() -> list[Path]:
    return sorted(REFERENCE.glob("*.reference.safetensors"))


@needs_reference
@pytest.mark.parametrize("file", FILES)
def test_weights_are_exllamav3s(file: str) -> None:
    """To the float16 of the largest weights: exllamav3 rounds four times on the way, we once.

    Rounding where exllamav3 does, all but some of a hundred weights come out with its very bits;
    its float32 sums, in an order that the GPU chooses, are the rest.
    """
    tensors = read_safetensors(REFERENCE / f"{file}.safetensors")
    reference = read_safetensors(REFERENCE / f"{file}.reference.safetensors")
    names = [name.removesuffix(".weight") for name in reference if name.endswith(".weight")]
    assert names
    for name in names:
        layer = layer_of(fields_of(tensors, name), name)
        theirs = reference[f"{name}.weight"]
        unit = np.spacing(np.abs(theirs).max()).astype(float)
        for ours in (weight(layer), rounded_like_exllamav3(layer)):
            assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
            assert np.abs(ours.astype(float) - theirs.astype(float)).max() <= unit, name
        assert np.mean(rounded_like_exllamav3(layer) == theirs) > 0.98, name


def rounded_like_exllamav3(layer: Linear) -> Array:
    """`LinearEXL3.get_weight_tensor`, with float16 after each of its steps."""
    root = np.sqrt(128)
    k, n = layer.shape
    left = turn(decode.inner(layer).astype(float).reshape(-1, 128, n)).reshape(k, n)
    scaled = (left / root).astype(np.float16) * layer.suh[:, None]
    across = np.ascontiguousarray(scaled.T.astype(float)).reshape(-1, 128, k)
    return (turn(across).reshape(n, k).T / root).astype(np.float16) * layer.svh


@needs_reference
@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("path", ["y", "y_gemm"])
def test_outputs_are_exllamav3s(file: str, path: str) -> None:
    """Both of its paths: the one that reconstructs and the fused kernel."""
    tensors = read_safetensors(REFERENCE / f"{file}.safetensors")
    reference = read_safetensors(REFERENCE / f"{file}.reference.safetensors")
    for name in (key.removesuffix(".x") for key in reference if key.endswith(".x")):
        layer = layer_of(fields_of(tensors, name), name)
        ours = reference[f"{name}.x"].astype(float) @ weight(layer).astype(float)
        assert np.abs(ours - reference[f"{name}.{path}"].astype(float)).max() < 3e-3, name


@needs_reference
@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("axis", [0, 1])
def test_halves_of_real_layers_decode_to_halves(file: str, axis: int) -> None:
    tensors = read_safetensors(REFERENCE / f"{file}.safetensors")
    for name in {key.removesuffix(".trellis") for key in tensors if key.endswith(".trellis")}:
        layer = layer_of(fields_of(tensors, name), name)
        whole = weight(layer)
        middle = whole.shape[axis] // 2
        for first, last in ((0, middle), (middle, whole.shape[axis])):
            part = weight(cut(layer, axis, first, last))
            assert same(part, whole.take(range(first, last), axis)), name


# The formula.


@pytest.mark.parametrize("codebook", CODEBOOKS)
@pytest.mark.parametrize("bits", [1, 5, 8])
def test_weights_are_the_formulas(bits: int, codebook: str) -> None:
    layer = made(256, 384, bits, codebook)
    left, right = np.kron(np.eye(2), sylvester()), np.kron(np.eye(3), sylvester())
    turned = left @ decode.inner(layer).astype(float) @ right
    whole = turned * (layer.suh.astype(float) / 128)[:, None] * layer.svh.astype(float)
    assert same(weight(layer), whole.astype(np.float16))


# Cuts.


def cut(layer: Linear, axis: int, first: int, last: int) -> Linear:
    """Rank slicing: `axis` 0 by input, 1 by output."""
    tiles = slice(first // 16, last // 16)
    if axis == 0:
        return Linear(layer.trellis[tiles], layer.suh[first:last], layer.svh, layer.codebook)
    return Linear(layer.trellis[:, tiles], layer.suh, layer.svh[first:last], layer.codebook)


@given(
    bits=st.integers(1, 8),
    codebook=st.sampled_from(CODEBOOKS),
    blocks=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    axis=st.sampled_from([0, 1]),
    seed=st.integers(0, 99),
    data=st.data(),
)
def test_a_cut_at_128_loses_nothing(
    bits: int, codebook: str, blocks: tuple[int, int], axis: int, seed: int, data: st.DataObject
) -> None:
    layer = made(128 * blocks[0], 128 * blocks[1], bits, codebook, seed)
    whole = weight(layer)
    stops = sorted(data.draw(st.sets(st.integers(1, blocks[axis]))) | {0, blocks[axis]})
    for first, last in pairwise(stops):
        part = weight(cut(layer, axis, 128 * first, 128 * last))
        assert same(part, whole.take(range(128 * first, 128 * last), axis))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("first", [16, 64, 112])
def test_a_cut_inside_of_a_block_decodes_to_something_else(axis: int, first: int) -> None:
    """Its tiles are whole and its size is right: only the numbers are not."""
    layer = made(256, 256)
    whole = weight(layer).astype(float).take(range(first, first + 128), axis)
    part = weight(cut(layer, axis, first, first + 128)).astype(float)
    assert np.abs(part - whole).max() > 0.5 * np.abs(whole).max()
    narrow = cut(layer, axis, 0, 64)
    with pytest.raises(PatchqError, match="blocks of 128"):
        linear("x", {"trellis": narrow.trellis, "suh": narrow.suh, "svh": narrow.svh}, "mcg")


def test_a_strip_is_what_it_is_in_any_company() -> None:
    layer = made(256, 640)
    whole = weight(layer)
    for width in (128, 256, 640, 1280):
        for row, column, part in decode.strips(layer, width):
            assert same(part, whole[row : row + 128, column : column + width])


# The stored forms.


def test_legacy_signs() -> None:
    packed = np.array([1, -32768, 0, -1], np.int16)
    signs = np.ones(64, np.float16)
    signs[[0, 31, *range(48, 64)]] = -1
    assert same(decode.unpack_signs(packed), signs)
    tensors = layer_tensors(Layer("x", 256, 128, legacy=True), np.random.default_rng(0))
    fields = fields_of(tensors, "x")
    layer = layer_of(fields)
    spelled = {"suh": decode.unpack_signs(fields["su"]), "svh": decode.unpack_signs(fields["sv"])}
    other = layer_of({"trellis": fields["trellis"], "mcg": fields["mcg"], **spelled})
    assert same(weight(layer), weight(other))


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("trellis", None, "x has no trellis"),
        ("suh", None, "x has no suh"),
        ("svh", None, "x has no svh"),
        ("suh", np.ones(256, np.float32), r"its suh is float32 \[256\], not float16 \[256\]"),
        ("svh", np.ones(256, np.float16), r"its svh is float16 \[256\], not float16 \[128\]"),
        ("trellis", np.zeros((16, 8, 64), np.uint16), "its trellis is uint16"),
        ("trellis", np.zeros((16, 8, 65), np.int16), "1 to 8 bits"),
        ("trellis", np.zeros((16, 9, 64), np.int16), "256 x 144"),
    ],
)
def test_what_is_no_layer(field: str, value: Array | None, says: str) -> None:
    tensors = layer_tensors(Layer("x", 256, 128), np.random.default_rng(0))
    fields = fields_of(tensors, "x")
    if value is None:
        del fields[field]
    else:
        fields[field] = value
    with pytest.raises(PatchqError, match=says):
        linear("x", fields, "mcg")


@pytest.mark.parametrize("packed", [np.zeros(8, np.int32), np.zeros((2, 8), np.int16)])
def test_packed_signs_of_another_kind(packed: Array) -> None:
    fields = {"trellis": np.zeros((16, 8, 64), np.int16), "su": packed, "sv": packed}
    with pytest.raises(PatchqError, match="packed signs"):
        linear("x", fields, "mcg")


def test_scales_that_are_not_numbers_stay_what_they_are() -> None:
    layer = made(128, 128)
    scale = layer.svh.copy()
    scale[3], scale[5] = np.nan, np.inf
    found = weight(Linear(layer.trellis, layer.suh, scale, layer.codebook))
    assert np.all(np.isnan(found[:, 3])) and not np.any(np.isfinite(found[:, 5]))
    assert np.all(np.isfinite(np.delete(found, [3, 5], axis=1)))


def test_fast_enough() -> None:
    """Processor time, so that a busy machine does not count."""
    layer = made(2048, 2048)
    weight(layer)
    start = time.process_time()
    weight(layer)
    assert time.process_time() - start < 2
