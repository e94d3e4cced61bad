"""What `patchq smoke` and `patchq compare` wrote (docs/json.md), read back for the gate."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

from patchq.smoke import identity as identities
from patchq.smoke.bench import Bench
from patchq.smoke.forms import flag, items, number, table, text
from patchq.smoke.identity import Identity
from patchq.smoke.load import METRICS, Cell, Kind, Metric
from patchq.smoke.load import value as value_of
from patchq.smoke.report import State
from patchq.smoke.stats import Verdict

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
STATES: tuple[State, ...] = get_args(State)
KINDS: tuple[Kind, ...] = get_args(Kind)
Figures = Mapping[Cell, Mapping[Metric, float]]
"""Medians, in each metric's unit."""
T = TypeVar("T")


@dataclass(frozen=True)
class Probed:
    """How a probe ended; `evidence` and `exchanges` are JSON values, `seconds` its wall time."""

    name: str
    state: State
    says: str
    asks: str
    rule: str
    stands_for: str
    seconds: float
    evidence: Mapping[str, Any]
    exchanges: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Smoked:
    """A run of probes; `tree`: the runner tree, as the server said it, None where it did not."""

    url: str
    model: str
    tree: str | None
    probes: tuple[Probed, ...]


@dataclass(frozen=True)
class Figure:
    """A metric of a cell: medians of both sides, and how B stands to A (above 1 is better)."""

    cell: Cell
    metric: Metric
    a: float
    b: float
    ratio: float
    low: float
    high: float
    verdict: Verdict
    says: str


@dataclass(frozen=True)
class Total:
    """A metric over all cells together."""

    metric: Metric
    ratio: float
    low: float
    high: float
    verdict: Verdict
    says: str


@dataclass(frozen=True)
class Compared:
    """B against A; `a_tree`, `b_tree`: the runner trees, as the servers said, or None; `baseline`:
    what A's figures are bound to; `doubts`: why it cannot be called the same."""

    verdict: Verdict
    interleaved: bool
    whole: bool
    missing: tuple[str, ...]
    a_tree: str | None
    b_tree: str | None
    figures: tuple[Figure, ...]
    totals: tuple[Total, ...] = ()
    baseline: Identity | None = None
    doubts: tuple[str, ...] = ()

    @property
    def judged(self) -> list[tuple[str, Figure | Total]]:
        """Everything that has a verdict, with what was asked for it."""
        told: list[tuple[str, Figure | Total]] = [("all together", each) for each in self.totals]
        return [*told, *((each.cell.name, each) for each in self.figures)]


def middles(bench: Bench) -> Figures:
    """Of all visits of the first side."""
    taken: dict[Cell, dict[Metric, list[float]]] = {}
    for visit in bench.visits:
        for metric in METRICS:
            figure = value_of(visit.taken, metric)
            if visit.side == 0 and figure is not None:
                taken.setdefault(visit.cell, {}).setdefault(metric, []).append(figure)
    return {
        cell: {metric: statistics.median(values) for metric, values in metrics.items()}
        for cell, metrics in taken.items()
    }


def released(entries: Any) -> Figures:
    """The table `bench` of a release's manifest. Raises ValueError."""
    found = {}
    for entry in map(table, items(entries)):
        told = {metric: number(entry[metric]) for metric in METRICS if metric in entry}
        found[_cell(entry)] = told
    return found


def smoked(value: Mapping[str, Any]) -> Smoked:
    """Raises ValueError for what is no `patchq.smoke/1`."""
    server = table(value.get("server"))
    version = server.get("version")
    told = version.get("patchq") if isinstance(version, Mapping) else None
    tree = told.get("tree") if isinstance(told, Mapping) else None
    probes = tuple(map(_probed, items(value.get("probes"))))
    if len({each.name for each in probes}) != len(probes):
        raise ValueError("a probe stands twice")
    return Smoked(
        text(server.get("url")),
        text(server.get("model")),
        tree if isinstance(tree, str) else None,
        probes,
    )


def _probed(value: Any) -> Probed:
    entry = table(value)
    return Probed(
        name=text(entry.get("name")),
        state=_word(entry.get("state"), STATES),
        says=text(entry.get("says")),
        asks=text(entry.get("asks")),
        rule=text(entry.get("rule")),
        stands_for=text(entry.get("stands_for")),
        seconds=number(entry.get("seconds")),
        evidence=table(entry.get("evidence")),
        exchanges=tuple(map(table, items(entry.get("exchanges")))),
    )


def compared(value: Mapping[str, Any]) -> Compared:
    """Raises ValueError for what is no `patchq.compare/1`."""
    baseline = value.get("baseline")
    return Compared(
        verdict=_word(value.get("verdict"), VERDICTS),
        interleaved=flag(value.get("interleaved")),
        whole=flag(value.get("whole")),
        missing=tuple(map(text, items(value.get("missing")))),
        a_tree=_tree(value.get("a")),
        b_tree=_tree(value.get("b")),
        figures=tuple(map(_figure, items(value.get("findings")))),
        totals=tuple(map(_total, items(value.get("totals", [])))),
        baseline=None if baseline is None else identities.read(baseline),
        doubts=tuple(map(text, items(value.get("doubts", [])))),
    )


def _figure(value: Any) -> Figure:
    entry = table(value)
    return Figure(
        cell=_cell(entry),
        metric=_word(entry.get("metric"), METRICS),
        a=number(entry.get("a")),
        b=number(entry.get("b")),
        ratio=number(entry.get("ratio")),
        low=number(entry.get("low")),
        high=number(entry.get("high")),
        verdict=_word(entry.get("verdict"), VERDICTS),
        says=text(entry.get("says")),
    )


def _total(value: Any) -> Total:
    entry = table(value)
    return Total(
        metric=_word(entry.get("metric"), METRICS),
        ratio=number(entry.get("ratio")),
        low=number(entry.get("low")),
        high=number(entry.get("high")),
        verdict=_word(entry.get("verdict"), VERDICTS),
        says=text(entry.get("says")),
    )


def _cell(entry: Mapping[str, Any]) -> Cell:
    return Cell(
        _word(entry.get("kind"), KINDS),
        int(number(entry.get("context"))),
        int(number(entry.get("concurrency"))),
        flag(entry.get("warm")),
    )


def _word(value: Any, words: Iterable[T]) -> T:
    """The one of `words` that it is."""
    found = next((each for each in words if each == value), None)
    if found is None:
        raise ValueError(f"{value!r:.80} is none of {', '.join(map(str, words))}")
    return found


def _tree(side: Any) -> str | None:
    tree = table(side).get("tree")
    return None if tree is None else text(tree)
