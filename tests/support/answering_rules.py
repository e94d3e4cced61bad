"""What the answering model learns from its lessons: what comes next, as rules.

A rule looks at a few places: the last tokens (0: this one, 1: the one before it, up to 6), and what
the network's heads found. Of a word or a number of the questions it sees only that it is one, so
what holds in the lessons holds for every value. For each token there are looked for the fewest
places that decide in all lessons what comes next; what was seen at them makes the rules.

That is counting: the same lessons make the same rules on every processor.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from patchq.smoke.questions import WORDS

WORD, NUMBER, NOTHING = "a word", "a number", "nothing at all"
CONTENTS = frozenset((*WORDS, *map(str, range(100))))
"""Words and numbers that a question may ask for: what the heads find."""
AGO = 6
FOUND, VALUE = "found", "value"
"""Places beside those of tokens: of what kind is what was found, and what is it?"""
Place = int | str
_PLACES: Sequence[Place] = (1, FOUND, *range(2, AGO + 1), VALUE)
_MOST = 4
AS_IS, SPACED = "as it is", "after a blank"
Says = int | str
"""A token; or what was found, in one of these ways."""
Seen = tuple[Mapping[Place, str], Says]
"""A place of a lesson: what stood there, and what came."""


@dataclass(frozen=True)
class Rule:
    """Where at each of the places one of its names stands, it says so."""

    when: Mapping[Place, frozenset[str]]
    says: Says


def bare(piece: str) -> str:
    """A token's text, without the blank before a word or a number."""
    return piece.removeprefix("Ġ") if piece[1:].isalnum() else piece


def symbol(piece: str) -> str:
    """As rules see it."""
    name = bare(piece)
    return (WORD if name in WORDS else NUMBER) if name in CONTENTS else name


def seen(pieces: Sequence[str], place: int, found: str, token: int, piece: str) -> Seen:
    """`pieces`: a lesson's tokens; what comes after the one at `place` is `token`, that is `piece`.

    `found`: the word, the number or the token that the heads find there, or NOTHING.
    """
    at: dict[Place, str] = {ago: symbol(pieces[place - ago]) for ago in range(min(place, AGO) + 1)}
    at |= {FOUND: symbol(found), VALUE: found}
    if found in CONTENTS and found == bare(piece):
        return at, AS_IS if piece == found else SPACED
    return at, token


def learn(lessons: Iterable[Seen]) -> list[Rule]:
    """Rules that hold in all of them. Raises ValueError where no few places decide."""
    cases: dict[str, dict[Any, Seen]] = defaultdict(dict)
    for at, says in lessons:
        cases[at[0]].setdefault((tuple(at.items()), says), (at, says))
    found = []
    for token, theirs in sorted(cases.items()):
        places = _fewest(token, list(theirs.values()))
        told = {(tuple(at[place] for place in places), says) for at, says in theirs.values()}
        for names, says in sorted(told, key=str):
            each = zip(places, names, strict=True)
            when = {place: frozenset({name}) for place, name in ((0, token), *each)}
            found.append(Rule(when, says))
    return _joined(found)


def _fewest(token: str, cases: Sequence[Seen]) -> tuple[Place, ...]:
    for count in range(_MOST + 1):
        for places in combinations(_PLACES, count):
            if _decide(places, cases):
                return places
    raise ValueError(f"{_MOST} places do not decide what comes after {token!r}")


def _decide(places: Sequence[Place], cases: Sequence[Seen]) -> bool:
    decided: dict[tuple[str, ...], Says] = {}
    for at, says in cases:
        if any(place not in at for place in places):
            return False
        if decided.setdefault(tuple(at[place] for place in places), says) != says:
            return False
    return True


def _joined(found: Sequence[Rule]) -> list[Rule]:
    """Rules that say the same, and look at the same and differ at one token's place, are one."""
    kept = list(found)
    for place in range(AGO + 1):
        alike: dict[Any, list[Rule]] = defaultdict(list)
        for rule in kept:
            others = frozenset(each for each in rule.when.items() if each[0] != place)
            alike[others, place in rule.when, rule.says].append(rule)
        kept = []
        for (_, looks, says), rules in alike.items():
            when = dict(rules[0].when)
            if looks:
                when[place] = frozenset(name for rule in rules for name in rule.when[place])
            kept.append(Rule(when, says))
    return kept
