"""That a rank's own tensors decode, on their own, to the source's weights in the rank's range.

A comparison of bytes shows that nothing was lost; it does not show that what a rank holds means
the same without the rest. So both sides are decoded here, each from its own trellis, scales and
marker, and the float16 results are compared bit for bit: by blocks of 128x128 or all of them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from patchq.errors import PatchqError
from patchq.exl3.compare import Reader, Stored
from patchq.exl3.decode import STRIP, Halves, Linear, strip, unpack_signs
from patchq.exl3.headers import AGAIN
from patchq.exl3.model import BLOCK, DEFAULT_CODEBOOK, MARKERS, TILE, Cut, Module
from patchq.exl3.plan import pattern

SAMPLE = 96
"""Layers of which blocks are decoded, unless all are."""


@dataclass(frozen=True, eq=False)
class Layer:
    """The stored fields of a layer, or of one rank's slice of it, keyed as in `model.FIELDS`."""

    name: str
    fields: Mapping[str, Stored]

    def codebook(self) -> str:
        """Which one its marker names. Raises PatchqError if that has another value."""
        found = [name for name in MARKERS if name in self.fields]
        if len(found) > 1:
            raise PatchqError(f"{self.name} has the markers of two codebooks", AGAIN)
        for name in found:
            stored = self.fields[name]
            values = stored.reader.read(stored.tensor, 0, stored.tensor.nbytes).view("<u4")
            for value in np.unique(values):
                if value != MARKERS[name]:
                    raise PatchqError(
                        f"{stored.tensor.name} is {int(value):#010x}, not {MARKERS[name]:#010x}",
                        AGAIN,
                    )
        return found[0] if found else DEFAULT_CODEBOOK

    def strip(self, expert: int, row: int, first: int, last: int) -> Halves:
        """float16 [128, last - first] of an expert's weight; multiples of 128 all three."""
        trellis = self.fields["trellis"]
        *_, rows, columns, words = trellis.tensor.shape
        width = (last - first) // TILE
        tiles = np.empty((BLOCK // TILE, width, words), "<i2")
        for line, tile in enumerate(range(row // TILE, (row + BLOCK) // TILE)):
            place = (expert * rows + tile) * columns + first // TILE
            part = tiles[line].reshape(-1).view(np.uint8)
            trellis.reader.fill(part, trellis.tensor, place * words * 2)
        suh = self._scale("suh", "su", expert, row, row + BLOCK)
        svh = self._scale("svh", "sv", expert, first, last)
        return strip(Linear(tiles, suh, svh, self.codebook()), 0, 0, last - first)

    def _scale(self, field: str, legacy: str, expert: int, first: int, last: int) -> Halves:
        stored = self.fields.get(field)
        if stored is not None:
            start = _row(stored, expert) + first * 2
            return stored.reader.read(stored.tensor, start, (last - first) * 2).view("<f2")
        stored = self.fields[legacy]
        start, size = _row(stored, expert) + first // 8, (last - first) // 8
        return unpack_signs(stored.reader.read(stored.tensor, start, size).view("<i2"))


def layer(name: str, module: Module, reader: Reader) -> Layer:
    """The fields of `module`, read from the files that its tensors name."""
    return Layer(name, {kind: Stored(reader, each) for kind, each in module.fields.items()})


def _row(stored: Stored, expert: int) -> int:
    """Where an expert's vector begins: one that all share has no axis for them."""
    shape = stored.tensor.shape
    return expert * shape[-1] * 2 if len(shape) > 1 else 0


def sample(found: Mapping[str, Module]) -> list[str]:
    """Names of layers: of every kind at least one, the others spread over all."""
    kinds: dict[tuple[str, int, int, int, str], str] = {}
    for name, module in found.items():
        kinds.setdefault((pattern(name), module.k, module.n, module.bits, module.codebook), name)
    chosen = dict.fromkeys(kinds.values())
    names = list(found)
    for name in names[:: max(1, len(names) // SAMPLE)]:
        if len(chosen) >= SAMPLE:
            break
        chosen[name] = None
    return list(chosen)


@dataclass(frozen=True)
class Place:
    """A strip of 128 rows of a rank's weight, and where it lies in the source's."""

    rank: int
    expert: int
    row: int
    first: int
    width: int
    source_row: int
    source_first: int

    @property
    def weights(self) -> int:
        return BLOCK * self.width


def every(module: Module, cut: Cut, rank: int) -> Iterator[Place]:
    """All of a rank's weight, in strips of at most `decode.STRIP` columns."""
    for expert in range(module.experts or 1):
        for row, source_row in _steps(_spans(cut, rank, "row", module.k), BLOCK):
            for start, source, size in _spans(cut, rank, "column", module.n):
                for at in range(0, size, STRIP):
                    width = min(STRIP, size - at)
                    yield Place(rank, expert, row, start + at, width, source_row, source + at)


def some(module: Module, cut: Cut, rank: int) -> Iterator[Place]:
    """The corner blocks of a rank's weight, where a cut that is off would show, and one inside.

    Which one, and of which expert, hangs on the layer's name: the same in every run.
    """
    rows = list(_steps(_spans(cut, rank, "row", module.k), BLOCK))
    columns = list(_steps(_spans(cut, rank, "column", module.n), BLOCK))
    chance = random.Random(f"{module.name} {rank}")  # noqa: S311 a sample, no secret
    expert = chance.randrange(module.experts or 1)
    chosen = {(rows[0], columns[0]), (rows[-1], columns[-1])}
    chosen.add((chance.choice(rows), chance.choice(columns)))
    for (row, source_row), (first, source_first) in sorted(chosen):
        yield Place(rank, expert, row, first, BLOCK, source_row, source_first)


def _spans(cut: Cut, rank: int, axis: str, size: int) -> list[tuple[int, int, int]]:
    """Along an axis, what lies together: its start in the rank's weight, in the source's, size."""
    if cut.split != axis:
        return [(0, 0, size)]
    found, start = [], 0
    for first, last in cut.ranges[rank]:
        found.append((start, first, last - first))
        start += last - first
    return found


def _steps(spans: list[tuple[int, int, int]], step: int) -> Iterator[tuple[int, int]]:
    for start, source, size in spans:
        for at in range(0, size, step):
            yield start + at, source + at


def problem(own: Layer, source: Layer | None, place: Place) -> str:
    """What is wrong there: both do not decode to the same bits, or `own` alone to no numbers."""
    mine = own.strip(place.expert, place.row, place.first, place.first + place.width)
    where = f"rows {place.row} to {place.row + BLOCK - 1} of {own.name}"
    if source is None:
        return "" if np.isfinite(mine).all() else f"{where} decode to something infinite"
    last = place.source_first + place.width
    theirs = source.strip(place.expert, place.source_row, place.source_first, last)
    if np.array_equal(mine.view(np.uint16), theirs.view(np.uint16)):
        return ""
    return f"{where} decode to other weights than {source.name} from row {place.source_row} on"
