"""Benchmark figures of the releases over time: a line for each context, a table of the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchq.render.report_html_plots import (
    BOTTOM,
    HEADS,
    HEIGHT,
    LEFT,
    TOP,
    UNITS,
    WIDTH,
    Axis,
    Mark,
    apart,
    figure,
    size,
)

if TYPE_CHECKING:
    from patchq.nightly.page import ReleaseRow
    from patchq.release.manifest import Figure
    from patchq.smoke.load import Metric

RIGHT = WIDTH - 58
"""Behind it stand the names of the lines."""
SHOWN: tuple[Metric, ...] = ("decode", "wall")
HUES = 6
"""Lines that have a colour of their own (page.css)."""
_DOTS = 24
ROOM = 15.0
"""Between the names of two lines."""

__all__ = ["BOTTOM", "HEIGHT", "LEFT", "RIGHT", "TOP", "WIDTH", "Group", "groups"]


@dataclass(frozen=True)
class Line:
    """One context. `hue` from 1; `at` is where its name stands, beside its last point."""

    name: str
    hue: int
    points: tuple[tuple[float, float], ...]
    at: float

    @property
    def path(self) -> str:
        return " ".join(f"{x:.0f},{y:.1f}" for x, y in self.points)

    @property
    def dots(self) -> str:
        """Each point as a line of no length, whose round ends make it a dot; of many the last."""
        shown = self.points if len(self.points) <= _DOTS else self.points[-1:]
        return "".join(f"M{x:.0f},{y:.1f}h0" for x, y in shown)


@dataclass(frozen=True)
class Plot:
    head: str
    says: str
    lines: tuple[Line, ...]
    across: tuple[Mark, ...]
    upward: tuple[Mark, ...]
    logarithmic: bool


@dataclass(frozen=True)
class Row:
    """A release's figures: of each context those of SHOWN, "" where it was not measured."""

    number: int
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """What was measured alike: a kind of text, so many requests at once, warm or cold."""

    name: str
    contexts: tuple[str, ...]
    plots: tuple[Plot, ...]
    rows: tuple[Row, ...]


def groups(releases: Sequence[ReleaseRow]) -> list[Group]:
    """All that was measured, one request at a time and cold first. `releases`: the newest first."""
    oldest = list(reversed(releases))
    kinds = {
        (each.kind != "prose", each.concurrency, each.warm, each.kind)
        for release in oldest
        for each in release.figures
    }
    return [_group(oldest, kind, concurrency, warm) for _, concurrency, warm, kind in sorted(kinds)]


def _group(oldest: Sequence[ReleaseRow], kind: str, concurrency: int, warm: bool) -> Group:
    found = {
        release.number: {
            each.context: each
            for each in release.figures
            if (each.kind, each.concurrency, each.warm) == (kind, concurrency, warm)
        }
        for release in oldest
    }
    numbers = [number for number, figures in found.items() if figures]
    contexts = sorted({context for figures in found.values() for context in figures})
    at_once = "one request" if concurrency == 1 else f"{concurrency} requests at once"
    rows = tuple(
        Row(number, tuple(_cells(found[number], contexts))) for number in reversed(numbers)
    )
    plots = (_plot(metric, numbers, contexts, found) for metric in SHOWN)
    return Group(
        f"{kind}, {at_once}, {'warm' if warm else 'cold'}",
        tuple(map(size, contexts)),
        tuple(plot for plot in plots if plot is not None),
        rows,
    )


def _cells(figures: dict[int, Figure], contexts: Sequence[int]) -> Iterator[str]:
    for context in contexts:
        for metric in SHOWN:
            value = _value(figures.get(context), metric)
            yield "" if value is None else figure(value)


def _value(found: Figure | None, metric: Metric) -> float | None:
    value: float | None = getattr(found, metric) if found else None
    return value


def _plot(
    metric: Metric,
    numbers: Sequence[int],
    contexts: Sequence[int],
    found: dict[int, dict[int, Figure]],
) -> Plot | None:
    values = {
        context: [
            (place, value)
            for place, number in enumerate(numbers)
            if (value := _value(found[number].get(context), metric)) is not None
        ]
        for context in contexts
    }
    values = {context: pairs for context, pairs in values.items() if pairs}
    if not values:
        return None
    axis = Axis([value for pairs in values.values() for _, value in pairs])
    many = len(numbers)
    points = {
        context: tuple((_across(place, many), axis.at(value)) for place, value in pairs)
        for context, pairs in values.items()
    }
    at = names([points[context][-1][1] for context in values])
    lines = tuple(
        Line(size(context), place % HUES + 1, points[context], at)
        for place, (context, at) in enumerate(zip(values, at, strict=True))
    )
    says = "; ".join(_told(context, pairs, numbers, metric) for context, pairs in values.items())
    marks = [Mark(_across(place, many), str(number)) for place, number in enumerate(numbers)]
    return Plot(HEADS[metric], says, lines, apart(marks, 26), axis.marks, axis.logarithmic)


def _told(
    context: int, pairs: Sequence[tuple[int, float]], numbers: Sequence[int], metric: Metric
) -> str:
    (first, was), (last, now) = pairs[0], pairs[-1]
    told = f"{size(context)}: {figure(was)} {UNITS[metric]} in release {numbers[first]}"
    return told if first == last else f"{told}, {figure(now)} in release {numbers[last]}"


def _across(place: int, many: int) -> float:
    if many == 1:
        return (LEFT + RIGHT) / 2
    return LEFT + 8 + place / (many - 1) * (RIGHT - LEFT - 16)


def names(wanted: Sequence[float]) -> list[float]:
    """Heights for the lines' names: as wanted, where that leaves room between them."""
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    found = list(wanted)
    floor = float(TOP)
    for place in order:
        found[place] = floor = max(found[place], floor)
        floor += ROOM
    ceiling = float(BOTTOM)
    for place in reversed(order):
        found[place] = ceiling = min(found[place], ceiling)
        ceiling -= ROOM
    return found
