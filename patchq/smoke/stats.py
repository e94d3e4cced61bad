"""Is B slower than A? Of rounds of times, without assuming how times are distributed.

A round gives one number: the logarithm of B's figure over A's, each the mean of two turns that lie
around each other (A B B A), so that a drift falls out. Were A and B alike, the sign of that number
would be chance; so Wilcoxon's signed ranks give an exact interval, around the Hodges-Lehmann
estimate (the median of all means of two rounds). Rounds that were measured at different times are
held against each other by his rank sums. Both bear outliers. (Hollander, Wolfe, Chicken,
Nonparametric Statistical Methods, 3.2, 3.3, 4.2, 4.3)

Two levels: `better` and `worse` are said where all intervals together hold at LEVEL (Bonferroni).
`same` asks the interval of 90 % of one figure that is chosen beforehand (two one-sided tests, 5 %
at each end); which one that is for all figures together, patchq.smoke.compare says.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, combinations_with_replacement, product
from typing import Literal

Verdict = Literal["better", "worse", "same", "inconclusive"]

LEVEL = 0.96
"""Of all intervals together. Rounds that lie beside each other are not quite independent, so that
false alarms of recorded latencies come to a little more than what this leaves; it is under 5 %."""
EQUAL = 0.90
"""Of the interval that lies within the margin where two are the same: 5 % at each end."""
DRIFT = 0.05
"""Between the first and the second half of the rounds, of the effect: then it is not one effect."""
SPREAD = 0.15
"""Of the rounds' effects, between their quartiles."""
FEWEST = 6
"""Rounds; with fewer, no interval of LEVEL has an end."""
_BLOCKS = 80
"""More rounds than these are averaged with their neighbours."""


@dataclass(frozen=True)
class Effect:
    """B against A as a ratio, above 1 where B is better.

    `low` and `high` bound it at the level that was asked for, `equal_low` and `equal_high` at
    EQUAL; with fewer `rounds` than `needed` the former are the range of what was seen, and no more.
    `drift`: between the halves, 0 where chance explains it.
    """

    ratio: float
    low: float
    high: float
    equal_low: float
    equal_high: float
    drift: float
    spread: float
    rounds: int
    needed: int = FEWEST


def effect(rounds: Sequence[float], level: float = LEVEL) -> Effect:
    """Of paired rounds (logarithms, above 0 where B is better); at least one."""
    values = _blocks(rounds)
    means = sorted((a + b) / 2 for a, b in combinations_with_replacement(values, 2))
    number = len(values)
    half = len(rounds) // 2
    return _effect(
        means,
        _ranks(number),
        level,
        _drift(rounds[:half], rounds[-half:], level) if half else 0.0,
        _width(rounds),
        len(rounds),
        next(n for n in range(2, 99) if _cut(_ranks(n), level)),
    )


def unpaired(a: Sequence[float], b: Sequence[float], level: float = LEVEL) -> Effect:
    """Of rounds (logarithms, higher is better) that were measured at different times.

    Nothing takes a drift out here, so drift and spread are the larger of the sides'.
    """
    drifts = [
        _drift(side[: len(side) // 2], side[-(len(side) // 2) :], level)
        for side in (a, b)
        if len(side) > 1
    ]
    return _effect(
        *_shifts(a, b),
        level,
        max(drifts, default=0.0),
        max(_width(a), _width(b)),
        min(len(a), len(b)),
        next(n for n in range(2, 99) if _cut(_rank_sums(n, n), level)),
    )


def _effect(
    estimates: list[float],
    chances: tuple[int, ...],
    level: float,
    drift: float,
    spread: float,
    rounds: int,
    needed: int,
) -> Effect:
    """`estimates`, sorted: of pairs. `chances`: of how many lie on one side of the truth."""
    ends = []
    for each in (level, EQUAL):
        cut = max(_cut(chances, each), 1)
        ends += [math.exp(estimates[cut - 1]), math.exp(estimates[-cut])]
    low, high, equal_low, equal_high = ends
    middle = math.exp(statistics.median(estimates))
    return Effect(middle, low, high, equal_low, equal_high, drift, spread, rounds, needed)


def _shifts(a: Sequence[float], b: Sequence[float]) -> tuple[list[float], tuple[int, ...]]:
    first, second = _blocks(a), _blocks(b)
    shifts = sorted(there - here for here, there in product(first, second))
    return shifts, _rank_sums(len(first), len(second))


def _cut(chances: tuple[int, ...], level: float) -> int:
    """How many estimates lie outside at each end; 0 where an interval of that level has no end."""
    most = (1 - level) / 2 * sum(chances)
    return sum(each <= most * (1 + 1e-9) for each in accumulate(chances))


@lru_cache
def _ranks(rounds: int) -> tuple[int, ...]:
    """In how many ways signs give each sum of positive ranks: the product of 1 + x^rank."""
    ways = [1, *[0] * (rounds * (rounds + 1) // 2)]
    for rank in range(1, rounds + 1):
        for total in range(len(ways) - 1, rank - 1, -1):
            ways[total] += ways[total - rank]
    return tuple(ways)


@lru_cache
def _rank_sums(a: int, b: int) -> tuple[int, ...]:
    """In how many orders so many values of B lie above A's: the Gaussian binomial coefficient."""
    ways = [1, *[0] * (a * b)]
    for number in range(1, b + 1):
        for total in range(a * b, a + number - 1, -1):
            ways[total] -= ways[total - a - number]
        for total in range(number, a * b + 1):
            ways[total] += ways[total - number]
    return tuple(ways)


def judge(found: Effect, margin: float) -> tuple[Verdict, str]:
    """The verdict, and why. `margin`: the ratio above which B is not inferior, below 1.

    better, worse: the interval lies beyond 1, and the effect is more than half of what the margin
    allows; same: the interval of EQUAL lies within the margin, on both sides. A drift or spread
    that is small beside the effect does not put it in doubt.
    """
    matters, size = math.sqrt(margin), abs(math.log(found.ratio))
    enough = found.rounds >= found.needed
    if found.rounds < FEWEST:
        said = "1 round is" if found.rounds == 1 else f"{found.rounds} rounds are"
        return "inconclusive", f"{said} too few, {found.needed} are needed"
    if found.drift > max(DRIFT, size / 2):
        return "inconclusive", f"the effect drifts by {found.drift:.1%} between the halves"
    if found.spread > max(SPREAD, size):
        return "inconclusive", f"the rounds differ by {found.spread:.0%}"
    if enough and found.high < 1 and found.ratio <= matters:
        return "worse", f"slower by {1 - found.ratio:.1%}"
    if enough and found.low > 1 and found.ratio >= 1 / matters:
        return "better", f"faster by {found.ratio - 1:.1%}"
    if margin < found.equal_low and found.equal_high < 1 / margin:
        return "same", f"within {1 - margin:.0%} either way"
    low, high = found.equal_low - 1, found.equal_high - 1
    more = "more rounds" if enough else f"{found.needed} rounds are needed"
    return "inconclusive", f"could be {low:+.1%} and {high:+.1%}: {more}"


def level_of(tests: int) -> float:
    """The level of each of so many intervals, so that all hold together at LEVEL (Bonferroni)."""
    return 1 - (1 - LEVEL) / max(tests, 1)


def _blocks(rounds: Sequence[float]) -> list[float]:
    """At most _BLOCKS means of neighbours, as many rounds in each as may be."""
    size = -(-len(rounds) // _BLOCKS)
    return [statistics.fmean(rounds[at : at + size]) for at in range(0, len(rounds), size)]


def _drift(first: Sequence[float], second: Sequence[float], level: float) -> float:
    """How far the halves lie apart, where an interval of that level shows that they do."""
    shifts, chances = _shifts(first, second)
    cut = _cut(chances, level)
    apart = cut and (shifts[cut - 1] > 0 or shifts[-cut] < 0)
    return abs(statistics.median(shifts)) if apart else 0.0


def _width(values: Sequence[float]) -> float:
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, method="inclusive")
    return math.exp(high - low) - 1
