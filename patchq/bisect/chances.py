"""How likely each move is the culprit, from what was seen of the subsets that were tried.

One move is supposed to bring the fault: a subset shows it where that move is in it, in some runs
only. In how many is not known; so what was seen is weighed with every rate between LEAST and 1, all
alike at first, and together with what the other subsets showed. A run that shows the fault where it
is not counts as a false alarm, which has a rate that the user gives.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from patchq.bisect.model import Move, Tried

LEAST = 0.3
"""The fault shows in so many of its runs at least; one that is rarer is found with less right."""
_RATES = 28
BELIEVED = 0.2
"""A subset that shows the fault with less than this chance is worked on as one that does not."""


@dataclass(frozen=True)
class Question:
    """Which of the moves is it? `low` does not show the fault and `high` (None: all) does.

    repeat: runs of one build before another is made; with 1 the fault shows in every run. sure: the
    chance of the answer. false_alarms: the rate of runs that show it where it is not.
    """

    moves: tuple[Move, ...]
    low: frozenset[str] = frozenset()
    high: frozenset[str] | None = None
    repeat: int = 1
    sure: float = 0.99
    false_alarms: float = 0.0

    @cached_property
    def top(self) -> frozenset[str]:
        return frozenset(move.name for move in self.moves) if self.high is None else self.high

    @cached_property
    def suspects(self) -> tuple[str, ...]:
        """In the order of the moves."""
        return tuple(
            move.name for move in self.moves if move.name in self.top and move.name not in self.low
        )

    @property
    def rates(self) -> tuple[float, ...]:
        if self.repeat == 1:
            return (1.0,)
        return tuple(LEAST + (1 - LEAST) * (each + 0.5) / _RATES for each in range(_RATES))

    @property
    def doubt(self) -> float:
        """What may be left open of one subset, so that all of a search leave no more than asked."""
        return (1 - self.sure) / (2 * max(1, math.ceil(math.log2(max(len(self.suspects), 2)))))


def chances(question: Question, tried: Iterable[Tried]) -> dict[str, float]:
    """Of each suspect, in all 1; all 0 where no single move can have shown what was seen."""
    seen = [each for each in tried if each.runs and question.low <= each.moves <= question.top]
    found = _weighed(question, seen)
    if sum(found.values()) == 0:
        # Two moves together, perhaps. Of subsets that lie within each other the argument holds: the
        # last that was needed lies between the largest without the fault and the smallest with it.
        found = _weighed(question, _nested(question, seen))
    total = sum(found.values())
    return {name: weight / total if total else 0.0 for name, weight in found.items()}


def _nested(question: Question, seen: Sequence[Tried]) -> list[Tried]:
    """Of subsets that do not go with one another: the smallest bad one, and those around it that
    lie within each other."""
    bad = least_bad(question, seen)
    chain = [each for each in seen if each.moves >= bad]
    within = bad
    for each in sorted(seen, key=lambda one: -len(one.moves)):
        if each.moves < within and not each.bad:
            chain.append(each)
            within = each.moves
    return chain


def least_bad(question: Question, tried: Sequence[Tried]) -> frozenset[str]:
    """The smallest subset that showed the fault."""
    bad = [each.moves for each in tried if each.bad and question.low <= each.moves]
    return min([question.top, *bad], key=len)


def chance_of(subset: frozenset[str], each: dict[str, float]) -> float:
    """That `subset` holds the culprit."""
    return sum(chance for name, chance in each.items() if name in subset)


def decided(question: Question, tried: Sequence[Tried], subset: frozenset[str]) -> bool:
    """Whether more runs of that subset would not say more."""
    chance = chance_of(subset, chances(question, tried))
    return not question.doubt < chance < 1 - question.doubt


def _weighed(question: Question, seen: Sequence[Tried]) -> dict[str, float]:
    known: dict[tuple[int, int, int, int], float] = {}
    found = {}
    for name in question.suspects:
        inside = [each for each in seen if name in each.moves]
        outside = [each for each in seen if name not in each.moves]
        counts = (
            sum(each.bad for each in inside),
            sum(each.good for each in inside),
            sum(each.bad for each in outside),
            sum(each.good for each in outside),
        )
        if counts not in known:
            known[counts] = _likelihood(question, *counts)
        found[name] = known[counts]
    return found


def _likelihood(question: Question, bad: int, good: int, false: int, clean: int) -> float:
    """Of these numbers of runs, with and without the culprit."""
    alarm = question.false_alarms
    shown = [1 - (1 - rate) * (1 - alarm) for rate in question.rates]
    inside = sum(rate**bad * (1 - rate) ** good for rate in shown) / len(shown)
    return inside * float(alarm**false * (1 - alarm) ** clean)
