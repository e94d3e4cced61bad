"""Two sides of one bench, or of two saved ones: better, worse, same or inconclusive."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchq.errors import Incomplete, PatchqError, ProofFailed
from patchq.smoke.bench import Bench, Side
from patchq.smoke.load import METRICS, Cell, Kind, Metric, value
from patchq.smoke.stats import Effect, Verdict, effect, judge, level_of, unpaired

if TYPE_CHECKING:
    from patchq.smoke.identity import Identity

_SIGN: Mapping[Metric, int] = {"decode": 1, "ttft": -1, "wall": -1}
"""Whether more is better."""
MARGINS: Mapping[Kind, float] = {"structured": 0.97, "prose": 0.95}


@dataclass(frozen=True)
class Finding:
    """A metric of a cell. `a` and `b` are medians of the rounds, in the metric's unit."""

    cell: Cell
    metric: Metric
    a: float
    b: float
    effect: Effect
    margin: float
    verdict: Verdict
    says: str


@dataclass(frozen=True)
class Total:
    """A metric over all cells together: of each round the mean (of logarithms) of its cells."""

    metric: Metric
    effect: Effect
    margin: float
    verdict: Verdict
    says: str


@dataclass(frozen=True)
class Comparison:
    """B against A. `interleaved`: measured in turns; `missing`: what one side has not; `whole`:
    everything that was to be measured was; `runner`: what B's figures are bound to, `baseline`
    what A's are."""

    a: Side
    b: Side
    interleaved: bool
    findings: tuple[Finding, ...]
    totals: tuple[Total, ...] = ()
    missing: tuple[str, ...] = ()
    whole: bool = True
    runner: Identity | None = None
    baseline: Identity | None = None

    @property
    def judged(self) -> tuple[Total | Finding, ...]:
        return (*self.totals, *self.findings)

    @property
    def verdict(self) -> Verdict:
        """`worse` where any figure is; else what the wall time of all cells together comes to,
        unless `doubts` has a word against it; `better` where any figure is, and all that holds."""
        verdicts = {each.verdict for each in self.judged}
        if "worse" in verdicts:
            return "worse"
        if self.doubts:
            return "inconclusive"
        return "better" if "better" in verdicts else "same"

    @property
    def gaps(self) -> tuple[str, ...]:
        """What was not measured, in words."""
        told = () if self.whole else ("not all was measured",)
        if not self.missing:
            return told
        return (*told, f"not measured on both sides: {', '.join(self.missing)}")

    @property
    def doubts(self) -> tuple[str, ...]:
        """What else there is to say where it is not worse and cannot be called the same: not all
        was measured, the wall time of all together is not judged, or another figure lies too low
        for that without being shown to be worse."""
        told = list(self.gaps)
        mains = [each for each in self.totals or self.findings if each.metric == "wall"]
        if not mains:
            told.append("no wall time was measured on both sides")
        told += [f"{_name(each)}: {each.says}" for each in mains if each.verdict == "inconclusive"]
        return (*told, *(_seems(each) for each in self.judged if each not in mains and _low(each)))

    @property
    def exit_code(self) -> int:
        """5 where B is worse, 6 where it cannot be said, else 0."""
        codes = {"worse": ProofFailed.exit_code, "inconclusive": Incomplete.exit_code}
        return codes.get(self.verdict, 0)


Rounds = dict[tuple[Cell, Metric], dict[int, float]]
"""Of each metric of each cell by round: the logarithm, higher is better."""


def rounds_of(bench: Bench, side: int) -> Rounds:
    """The rounds of which both turns have their figure."""
    turns: dict[tuple[Cell, Metric], dict[int, list[float]]] = defaultdict(dict)
    for visit in bench.visits:
        if visit.side != side:
            continue
        for metric in METRICS:
            figure = value(visit.taken, metric)
            if figure is not None and figure > 0:
                there = turns[visit.cell, metric].setdefault(visit.round, [])
                there.append(_SIGN[metric] * math.log(figure))
    return {
        key: {number: sum(each) / 2 for number, each in found.items() if len(each) == 2}
        for key, found in turns.items()
    }


def compare(
    a: tuple[Bench, int],
    b: tuple[Bench, int],
    margins: Mapping[Kind, float] = MARGINS,
    among: int = 1,
) -> Comparison:
    """The second of each: which side of the bench. `among`: so many comparisons are made together.

    Raises PatchqError where nothing is alike.
    """
    first, second = rounds_of(*a), rounds_of(*b)
    keys = [key for key in first if key in second]
    whole = not any(bench.exit_code for bench, _ in (a, b))
    if not keys:
        fault = PatchqError if whole else Incomplete
        raise fault(
            "nothing was measured on both sides", "measure both with the same options, then again"
        )
    together = a[0].run == b[0].run
    summed = _summed(keys, first), _summed(keys, second)
    # Half of what may be wrong for the totals, which see most; half for the cells.
    parts = 2 if summed[0] else 1
    level = level_of(parts * len(keys) * among)
    of_totals = level_of(parts * len(summed[0]) * among)
    findings, missing = [], []
    for key in keys:
        found = _effect(first[key], second[key], together, level)
        cell, metric = key
        if found is None:
            missing.append(f"{cell.name} {metric}")
            continue
        margin = margins[cell.kind]
        verdict, says = judge(found, margin)
        figures = (_figure(metric, first[key]), _figure(metric, second[key]))
        findings.append(Finding(cell, metric, *figures, found, margin, verdict, says))
    missing += [
        f"{cell.name} {metric}"
        for cell, metric in sorted(set(first) ^ set(second), key=lambda key: (key[0].name, key[1]))
    ]
    totals = []
    for metric, rounds in summed[0].items():
        # Where each cell is as much slower as its own margin allows, the total is so by this.
        margin = statistics.geometric_mean(
            margins[cell.kind] for cell, its in keys if its == metric
        )
        found = _effect(rounds, summed[1][metric], together, of_totals)
        if found is not None:
            totals.append(Total(metric, found, margin, *judge(found, margin)))
    return Comparison(
        a[0].sides[a[1]],
        b[0].sides[b[1]],
        together,
        tuple(findings),
        tuple(totals),
        tuple(missing),
        whole,
        b[0].runner,
        a[0].runner,
    )


def _summed(keys: Sequence[tuple[Cell, Metric]], rounds: Rounds) -> dict[Metric, dict[int, float]]:
    """The rounds of each metric that several cells have: their mean, where all have that round."""
    found = {}
    for metric in METRICS:
        cells = [rounds[key] for key in keys if key[1] == metric]
        if len(cells) > 1:
            common = set.intersection(*(set(each) for each in cells))
            found[metric] = {
                number: statistics.fmean(each[number] for each in cells)
                for number in sorted(common)
            }
    return found


def _effect(
    a: Mapping[int, float], b: Mapping[int, float], together: bool, level: float
) -> Effect | None:
    if not together:
        return unpaired([*a.values()], [*b.values()], level) if a and b else None
    paired = [b[number] - a[number] for number in sorted(a) if number in b]
    return effect(paired, level) if paired else None


def _low(each: Finding | Total) -> bool:
    """Not shown to be worse, but no figure of the same. A cell is noisier than all together, and is
    looked at by the time that a user waits."""
    if each.verdict == "worse":
        return False
    if isinstance(each, Total):
        return each.effect.ratio <= each.margin
    return each.metric == "wall" and each.effect.ratio <= each.margin**2


def _seems(each: Finding | Total) -> str:
    return f"{_name(each)} seems slower by {1 - each.effect.ratio:.1%}: more rounds"


def _name(each: Finding | Total) -> str:
    return f"{each.cell.name if isinstance(each, Finding) else 'all together'} {each.metric}"


def _figure(metric: Metric, rounds: Mapping[int, float]) -> float:
    return math.exp(_SIGN[metric] * statistics.median(rounds.values())) if rounds else 0.0
