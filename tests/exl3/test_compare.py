"""Reading by pieces and comparing: any cut, any size of chunk, every byte."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.exl3 import compare as comparing
from patchq.exl3.compare import Reader, Stored, compare, digest
from patchq.exl3.headers import BadFile
from patchq.exl3.model import Tensor
from tests.support.shards import Array

Ranges = list[list[tuple[int, int]]]


@contextmanager
def stored(folder: Path, arrays: dict[str, Array], chunk: int) -> Iterator[dict[str, Stored]]:
    """Each array in a file of its own, after three bytes of something else."""
    old = comparing.CHUNK
    with ExitStack() as stack:
        reader = stack.enter_context(Reader(folder))
        found = {}
        for name, array in arrays.items():
            (folder / name).write_bytes(b"abc" + array.tobytes())
            tensor = Tensor(name, "I16", array.shape, name, 3, 3 + array.nbytes)
            found[name] = Stored(reader, tensor)
        comparing.CHUNK = chunk
        vars(comparing._local).clear()
        try:
            yield found
        finally:
            comparing.CHUNK = old
            vars(comparing._local).clear()


@st.composite
def cuts(draw: st.DrawFn) -> tuple[tuple[int, ...], int, Ranges]:
    """A shape, an axis, and for one to four slices one or two ranges along it."""
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)))
    axis = draw(st.integers(0, len(shape) - 1))
    edge = st.integers(0, shape[axis])
    span = st.tuples(edge, edge).map(lambda two: (min(two), max(two)))
    ranges = draw(st.lists(st.lists(span, min_size=1, max_size=2), min_size=1, max_size=4))
    return shape, axis, ranges


def taken(whole: Array, axis: int, spans: list[tuple[int, int]]) -> Array:
    parts = [whole.take(range(first, last), axis) for first, last in spans]
    kept = np.concatenate(parts, axis)
    return kept[..., :1] if kept.size == 0 else kept


@given(cut=cuts(), chunk=st.sampled_from([18, 64, 1 << 20]), data=st.data())
def test_any_cut(
    tmp_path_factory: pytest.TempPathFactory,
    cut: tuple[tuple[int, ...], int, Ranges],
    chunk: int,
    data: st.DataObject,
) -> None:
    shape, axis, ranges = cut
    whole = np.random.default_rng(0).integers(-(2**15), 2**15, shape).astype("<i2")
    slices = [taken(whole, axis, spans) for spans in ranges]
    full = [place for place, each in enumerate(slices) if each.size]
    spoiled = data.draw(st.sampled_from([None, *full]))
    absent = data.draw(st.sampled_from([None, *range(len(slices))]))
    if spoiled is not None:
        slices[spoiled] = slices[spoiled].copy()
        at = data.draw(st.integers(0, slices[spoiled].nbytes - 1))
        slices[spoiled].reshape(-1).view("u1")[at] ^= 1 << data.draw(st.integers(0, 7))
    arrays = {"whole": whole} | {str(place): each for place, each in enumerate(slices)}
    with stored(tmp_path_factory.mktemp("cut"), arrays, chunk) as found:
        given = [None if place == absent else found[str(place)] for place in range(len(slices))]
        result = compare(found["whole"], given, axis, ranges)
        assert digest(found["whole"]) == hashlib.sha256(whole.tobytes()).digest()
    assert bool(result.different) == (spoiled is not None and spoiled != absent)
    if result.different:
        assert result.different.startswith(f"{spoiled} ({spoiled}) is not what whole has there")
    for place, each in enumerate(slices):
        wanted = None if place == absent else hashlib.sha256(each.tobytes()).digest()
        assert result.digests[place] == wanted


@pytest.mark.parametrize(("chunk", "place"), [(8, "bytes 64 to 65"), (1 << 20, "bytes 0 to 65")])
def test_copies(tmp_path: Path, chunk: int, place: str) -> None:
    whole = np.arange(33, dtype="<i2")
    with stored(tmp_path, {"whole": whole, "0": whole, "1": whole}, chunk) as found:
        assert compare(found["whole"], [found["0"], found["1"]]).different == ""
    spoiled = whole.copy()
    spoiled[32] = 0
    with stored(tmp_path, {"whole": whole, "0": whole, "1": spoiled}, chunk) as found:
        different = compare(found["whole"], [found["0"], found["1"]]).different
        assert different.startswith("1 (1) is not what whole") and different.endswith(place)


def test_scalars_and_nothing(tmp_path: Path) -> None:
    one, none = np.array(7, "<i2"), np.empty((0, 4), "<i2")
    with stored(tmp_path, {"one": one, "two": one, "none": none, "nil": none}, 64) as found:
        assert compare(found["one"], [found["two"]]).different == ""
        assert compare(found["none"], [found["nil"]], 0, [[(0, 0)]]).different == ""


def test_a_file_that_ends_too_soon(tmp_path: Path) -> None:
    with stored(tmp_path, {"whole": np.arange(9, dtype="<i2")}, 64) as found:
        (tmp_path / "whole").write_bytes(b"abcd")
        with pytest.raises(BadFile, match="whole ends at byte 4, in whole"):
            digest(found["whole"])


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    with stored(tmp_path, {"whole": np.arange(9, dtype="<i2")}, 64) as found:
        (tmp_path / "whole").unlink()
        with pytest.raises(BadFile, match="whole: No such file"):
            digest(found["whole"])
