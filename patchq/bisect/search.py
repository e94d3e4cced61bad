"""What to try next, so that few builds name the culprit: pure, without a memory of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from patchq.bisect import subsets
from patchq.bisect.chances import BELIEVED, Question, chance_of, chances, decided, least_bad
from patchq.bisect.model import Tried

AGAIN = 0.35
"""What it costs to go back to a build that is there, where a new one costs 1."""
VISITS = 4
ENOUGH = 40
"""One goes back to a build until it has had so many times --repeat runs, and this many."""
_WORTHLESS = 0.0001
"""A new build that would say less is not made."""
SKIPS = 40
"""Subsets in a row that cannot be tried, until one gives up."""
_LITTLE = 0.01
"""Going back says less than that: then one does not."""
_SHOWN = 0.005


@dataclass(frozen=True)
class Try:
    """Make and try each of these; they may be tried at the same time."""

    subsets: tuple[frozenset[str], ...]


@dataclass(frozen=True)
class Again:
    """Run these once more; they are built already."""

    subsets: tuple[frozenset[str], ...]


@dataclass(frozen=True)
class Found:
    """It is this move, with that chance. suspects: others that it could be, with theirs."""

    name: str
    chance: float
    suspects: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Unsure:
    """It is one of these, and nothing that can be tried says which."""

    suspects: tuple[tuple[str, float], ...]
    why: str


Step = Try | Again | Found | Unsure


def next_step(question: Question, tried: Sequence[Tried], wanted: int = 1) -> Step:
    """What to do after all that was seen. Try has up to `wanted` subsets, Again as well."""
    each = chances(question, tried)
    ranked = sorted(each.items(), key=lambda pair: -pair[1])
    shown = tuple((name, chance) for name, chance in ranked if chance >= _SHOWN)
    if not ranked:
        return Unsure((), "nothing moved")
    if not ranked[0][1]:
        return Unsure(
            tuple((name, 0.0) for name, _ in ranked),
            "a subset showed the fault in one run and a larger one did not: it shows in some runs"
            " only, or another move hides it",
        )
    name, chance = ranked[0]
    if chance >= question.sure:
        return Found(name, chance, shown)
    # What was broken off first, be it before its first run.
    if cut := tuple(
        one.moves
        for one in tried
        if _mine(question, one)
        and one.runs < question.repeat
        and not decided(question, tried, one.moves)
    ):
        return Again(cut[:wanted])
    split = _split(question, tried, each, wanted)
    revisit = sorted(
        (
            (_even(chance_of(one.moves, each)) / AGAIN, one.moves)
            for one in tried
            if _mine(question, one) and 0 < one.runs < max(question.repeat * VISITS, ENOUGH)
        ),
        key=lambda pair: -pair[0],
    )
    if question.repeat > 1 and revisit and revisit[0][0] > max(split[0], _LITTLE):
        return Again(tuple(moves for _, moves in revisit[:1]))
    row = len(list(takewhile(lambda one: one.skipped is not None, reversed(tried))))
    if split[0] >= _WORTHLESS and row < SKIPS:
        return Try(split[1])
    skipped = sum(one.skipped is not None for one in tried)
    return Unsure(
        shown,
        f"{skipped} subsets that would tell them apart cannot be tried"
        if skipped
        else "more runs would be needed than --repeat allows",
    )


def _mine(question: Question, one: Tried) -> bool:
    """Whether a subset lies between the question's ends, and can be run again."""
    return one.skipped is None and question.low < one.moves < question.top


def _even(mass: float) -> float:
    """What a subset is worth that holds the culprit with this chance."""
    return 4 * mass * (1 - mass)


def _split(
    question: Question, tried: Sequence[Tried], each: dict[str, float], wanted: int
) -> tuple[float, tuple[frozenset[str], ...]]:
    space = subsets.Space(question.moves)
    seen = [one for one in tried if one.runs]
    bad = least_bad(question, [one for one in seen if chance_of(one.moves, each) > 1 - BELIEVED])
    good = question.low
    for one in seen:
        if chance_of(one.moves & bad, each) < BELIEVED and not one.moves >= bad:
            good |= one.moves & bad
    if chance_of(good, each) >= BELIEVED:
        good = question.low
    split = subsets.best(
        space,
        [each.get(name, 0.0) for name in space.names],
        space.bits(good),
        space.bits(bad),
        subsets.Skips(space, tried),
        wanted,
    )
    return split.worth, tuple(space.subset(bits) for bits in split.subsets)
