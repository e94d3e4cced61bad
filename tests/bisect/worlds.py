"""Worlds in which one of many moves brings a fault: needs, told and untold, and what breaks alone."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from patchq.bisect.chances import Question, decided
from patchq.bisect.model import Move, Tried, closed
from patchq.bisect.search import Again, Found, Step, Try, Unsure, next_step


@dataclass(frozen=True)
class World:
    """hidden: pairs (a, b), a cannot be built without b and does not say so. broken: the share of
    subsets that cannot be built for no reason of a pair. rate: of runs that show the fault."""

    moves: tuple[Move, ...]
    culprit: str
    hidden: tuple[tuple[str, str], ...] = ()
    broken: float = 0.0
    rate: float = 1.0
    false_alarms: float = 0.0
    seed: int = 0

    def builds(self, subset: frozenset[str]) -> bool:
        assert closed(self.moves, subset) == subset, "a subset lacks what it needs"
        if any(a in subset and b not in subset for a, b in self.hidden):
            return False
        if len(subset) in (0, len(self.moves)):
            return True
        digest = hashlib.sha256(f"{self.seed} {sorted(subset)}".encode()).digest()
        return int.from_bytes(digest[:4]) / 2**32 >= self.broken


def world(
    seed: int,
    count: int = 64,
    *,
    rate: float = 0.6,
    broken: float = 0.15,
    hidden: int = 6,
    backwards: bool = False,
) -> World:
    """One of chance: about half of the moves need one or two others."""
    dice = random.Random(seed)
    names = [f"patch-{number:02}" for number in range(count)]
    moves = []
    for place, name in enumerate(names):
        needs = dice.sample(names[:place], min(place, dice.choice((0, 0, 1, 2))))
        moves.append(Move(name, "patch", f"{name} is new", needs=frozenset(needs)))
    pairs = []
    for _ in range(hidden if count > 1 else 0):
        a, b = sorted(dice.sample(range(count), 2), reverse=not backwards)
        if names[a] not in closed(moves, frozenset({names[b]})):
            pairs.append((names[a], names[b]))
    return World(tuple(moves), dice.choice(names), tuple(pairs), broken, rate, seed=seed)


@dataclass
class Search:
    """A bisection as it went. attempts: subsets that were asked for, builds: those that could be
    built."""

    tried: list[Tried] = field(default_factory=list)
    attempts: int = 0
    builds: int = 0
    runs: int = 0
    rounds: int = 0
    end: Step | None = None

    @property
    def name(self) -> str | None:
        return self.end.name if isinstance(self.end, Found) else None


def search(
    there: World,
    question: Question,
    wanted: int = 1,
    shows: Callable[[frozenset[str]], bool] | None = None,
) -> Search:
    """Ask until there is an answer."""
    dice = random.Random(there.seed + 1)
    found = Search()
    shows = shows or (lambda subset: there.culprit in subset)

    def run(subset: frozenset[str]) -> bool:
        found.runs += 1
        return (shows(subset) and dice.random() < there.rate) or dice.random() < there.false_alarms

    while True:
        assert found.rounds < 300, "it does not end"
        step = next_step(question, found.tried, wanted)
        if isinstance(step, Found | Unsure):
            found.end = step
            return found
        found.rounds += 1
        before = tuple(found.tried)
        for subset in step.subsets:
            old = next((each for each in before if each.moves == subset), None)
            assert (old is not None) == isinstance(step, Again), "a build is not made twice"
            if isinstance(step, Try):
                found.attempts += 1
                if not there.builds(subset):
                    found.tried.append(Tried(subset, skipped="it cannot be built"))
                    continue
                found.builds += 1
            now = old or Tried(subset)
            others = [each for each in before if each.moves != subset]
            for _ in range(question.repeat):
                bad = run(subset)
                now = replace(now, bad=now.bad + bad, good=now.good + (not bad))
                if decided(question, [*others, now], subset):
                    break
            found.tried = [each for each in found.tried if each.moves != subset] + [now]
