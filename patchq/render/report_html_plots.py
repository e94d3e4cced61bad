"""Plots of the report: figures over context, as places in an SVG of `WIDTH` by `HEIGHT`.

The axis and its marks are the other page's, too (page_plots.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from patchq.smoke.gate_forms import Figures
    from patchq.smoke.load import Metric

WIDTH, HEIGHT = 420, 250
LEFT, RIGHT, TOP, BOTTOM = 46, 404, 14, 214
UNITS: Mapping[Metric, str] = {"decode": "tok/s", "ttft": "s", "wall": "s"}
HEADS: Mapping[Metric, str] = {
    "decode": "Decode, tokens a second",
    "ttft": "First token, seconds",
    "wall": "Wall time, seconds",
}
_MOST = 6
"""Marks of an axis."""
_LEAST = 1e-6
"""What is smaller counts as nothing."""
_STEEP = 20
"""Largest against smallest, from which on an axis is logarithmic."""


@dataclass(frozen=True)
class Mark:
    """A place on an axis and what stands there."""

    at: float
    label: str


@dataclass(frozen=True)
class Point:
    x: float
    y: float
    says: str


@dataclass(frozen=True)
class Line:
    """`whose`: this or last; `warm`: the prompt had been asked before."""

    whose: str
    warm: bool
    points: tuple[Point, ...]

    @property
    def path(self) -> str:
        return " ".join(f"{point.x:.1f},{point.y:.1f}" for point in self.points)


@dataclass(frozen=True)
class Plot:
    head: str
    unit: str
    concurrency: int
    lines: tuple[Line, ...]
    across: tuple[Mark, ...]
    upward: tuple[Mark, ...]
    logarithmic: bool


def plots(this: Figures, last: Figures) -> list[Plot]:
    """For each number of requests at once: decode rate, first token and wall time of prose."""
    cells = {cell for figures in (this, last) for cell in figures if cell.kind == "prose"}
    found = (
        _plot(metric, concurrency, this, last)
        for concurrency in sorted({cell.concurrency for cell in cells})
        for metric in HEADS
    )
    return [plot for plot in found if plot is not None]


def size(context: int) -> str:
    return f"{context / 1024:.3g}k" if context >= 1000 else str(context)


def figure(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def _plot(metric: Metric, concurrency: int, this: Figures, last: Figures) -> Plot | None:
    found = {
        (whose, warm): sorted(
            (cell.context, figures[cell][metric])
            for cell in figures
            if cell.kind == "prose" and (cell.concurrency, cell.warm) == (concurrency, warm)
            if metric in figures[cell]
        )
        for whose, figures in (("last", last), ("this", this))
        for warm in (False, True)
    }
    contexts = sorted({context for pairs in found.values() for context, _ in pairs})
    values = [value for pairs in found.values() for _, value in pairs]
    if not contexts:
        return None
    axis = Axis(values)
    unit = UNITS[metric]
    lines = tuple(
        Line(
            whose,
            warm,
            tuple(
                Point(
                    _across(context, contexts),
                    axis.at(value),
                    f"{whose}, {'warm' if warm else 'cold'}, {size(context)}:"
                    f" {figure(value)} {unit}",
                )
                for context, value in pairs
            ),
        )
        for (whose, warm), pairs in found.items()
        if pairs
    )
    marks = (Mark(_across(each, contexts), size(each)) for each in contexts)
    return Plot(HEADS[metric], unit, concurrency, lines, apart(marks), axis.marks, axis.logarithmic)


def _across(context: int, contexts: Sequence[int]) -> float:
    first, last = (math.log2(max(each, 1)) for each in (contexts[0], contexts[-1]))
    if first == last:
        return (LEFT + RIGHT) / 2
    share = (math.log2(max(context, 1)) - first) / (last - first)
    return LEFT + 14 + share * (RIGHT - LEFT - 28)


def apart(marks: Iterable[Mark], least: float = 40) -> tuple[Mark, ...]:
    """Those whose labels have room beside each other; `marks` from left to right."""
    found: list[Mark] = []
    for each in marks:
        if not found or each.at - found[-1].at >= least:
            found.append(each)
    return tuple(found)


class Axis:
    """From nothing to the largest; logarithmic where the values lie far apart."""

    def __init__(self, values: Sequence[float]) -> None:
        above = [value for value in values if value >= _LEAST]
        self.most = max(above, default=1.0)
        self.least = min(above, default=1.0)
        self.logarithmic = self.most / self.least >= _STEEP
        if self.logarithmic:
            self.least, self.most = self.least / 1.15, self.most * 1.15
            marks = list(_decades(self.least, self.most))
        else:
            step = _step(self.most)
            self.least, self.most = 0.0, math.ceil(self.most / step - 1e-9) * step
            marks = [number * step for number in range(round(self.most / step) + 1)]
        self.marks = tuple(Mark(self.at(each), f"{each:g}") for each in marks)

    def at(self, value: float) -> float:
        if self.logarithmic:
            value, least, most = (
                math.log(max(each, _LEAST / 2)) for each in (value, self.least, self.most)
            )
        else:
            least, most = self.least, self.most
        share = min(max((value - least) / (most - least), 0.0), 1.0)
        return BOTTOM - share * (BOTTOM - TOP)


def _step(most: float) -> float:
    """A round number, of which at most `_MOST` reach `most`."""
    power = 10.0 ** math.floor(math.log10(most / _MOST))
    return next(power * each for each in (1, 2, 2.5, 5, 10, 20) if power * each * _MOST >= most)


def _decades(least: float, most: float) -> Iterator[float]:
    """1, 2, 5, 10, ... between the two; fewer where they would be many."""
    first, last = math.floor(math.log10(least)), math.ceil(math.log10(most))
    wide = math.log10(most / least)
    steps = (1, 2, 5) if wide <= 1.6 else (1, 3) if wide <= 2.7 else (1,)
    for power in range(first, last + 1, max(1, math.ceil(wide / _MOST))):
        for each in steps:
            value = round(each * 10.0**power, 9)
            if least <= value <= most:
                yield value
