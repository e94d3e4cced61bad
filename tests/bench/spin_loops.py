"""Texts that spin, each with the place where its loop begins.

Markov models of real texts go round by themselves where always the likeliest word is taken: those
loops are found, not made. The tiny model's own words (tests/support/tinymodel.py) are a second
source. Near loops, counters and runs are made from the same texts.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tests.support.tinymodel import END, MODES, THINK_END

_LEAST = 4000
_RUNS = (("!", "lock", " the", "0"), ("?", "\n", "ha", "哈"))
_COUNTERS = (
    ("Step {n}: let me check the result of the call once more, and go on.\n", "Attempt {n}. "),
    ("Now I try number {n}, since {n} was not tried before. ", "Page {n} of the list;\n"),
)


@dataclass(frozen=True)
class Loop:
    """`begins` and `period` in characters; the loop goes on to the end of `text`."""

    text: str
    begins: int
    period: int


class Chain:
    """Which words follow `order` words in a text, the commonest first; blanks belong to words."""

    def __init__(self, text: str, order: int) -> None:
        self.order = order
        self.tokens = re.findall(r"\s*(?:\w+|[^\w\s])", text)
        found: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        for place in range(order, len(self.tokens)):
            found[tuple(self.tokens[place - order : place])][self.tokens[place]] += 1
        self.following = {state: list(counts.elements()) for state, counts in found.items()}
        self.likeliest = {state: counts.most_common(1)[0][0] for state, counts in found.items()}

    def loop(self, pick: random.Random) -> tuple[str, list[str]] | None:
        """What it says greedily before its loop, and the words of the loop; None if it ends."""
        start = pick.randrange(len(self.tokens) - self.order)
        said = self.tokens[start : start + self.order]
        seen: dict[tuple[str, ...], int] = {}
        while (state := tuple(said[-self.order :])) not in seen:
            if state not in self.likeliest:
                return None
            seen[state] = len(said)
            said.append(self.likeliest[state])
        first = seen[state]
        return "".join(said[:first]), said[first:]

    def passage(self, pick: random.Random) -> str:
        """Of the text itself."""
        start = pick.randrange(len(self.tokens) - 200)
        return "".join(self.tokens[start : start + 200])

    def wander(self, pick: random.Random, most: int) -> str:
        """At temperature 1: it goes on without a loop."""
        said: list[str] = []
        while len(said) < most:
            following = self.following.get(tuple(said[-self.order :]))
            if following is None:
                start = pick.randrange(len(self.tokens) - self.order)
                said += self.tokens[start : start + self.order]
            else:
                said.append(pick.choice(following))
        return "".join(said)


def exact(half: int, chain: Chain, pick: random.Random, many: int) -> Iterator[Loop]:
    """Loops of a chain, and those of the tiny model (all of it in half 1)."""
    while many:
        if found := chain.loop(pick):
            yield _repeated(*found)
            many -= 1
    if half:
        for mode in MODES.values():
            for words in mode:
                if words[-1] not in (END, THINK_END) and words[-1] != words[-2]:
                    yield _repeated("The answer is yes.", list(words))


def near(half: int, chain: Chain, pick: random.Random, many: int) -> Iterator[Loop]:
    """A passage of 25 to 150 words of prose again and again, one to four words changed in each copy.

    Half 0 puts another word in its place, half 1 also leaves words out and puts some in.
    """
    words = [token for token in chain.tokens if token.strip().isalpha()]
    while many:
        size = pick.randrange(25, 150)
        start = pick.randrange(len(words) - 2 * size)
        passage = words[start : start + size]
        before = "".join(words[start + size : start + size + pick.randrange(size)])
        text = before
        for _ in range(max(8, _LEAST // len("".join(passage)))):
            copy = list(passage)
            for _ in range(pick.randint(1, min(4, size // 25))):
                place = pick.randrange(len(copy))
                other = [pick.choice(words)]
                copy[place : place + 1] = (
                    pick.choice([other, [], [copy[place], *other]]) if half else other
                )
            text += "".join(copy)
        yield Loop(text, len(before), len("".join(passage)))
        many -= 1


def counters(half: int, chain: Chain, pick: random.Random, many: int) -> Iterator[Loop]:
    """Only the numbers move on."""
    for _ in range(many):
        before, template = chain.passage(pick), pick.choice(_COUNTERS[half])
        first, step = pick.randrange(50), pick.choice([1, 1, 2])
        text = "".join(template.format(n=first + step * n) for n in range(400))
        yield Loop(before + text, len(before), len(template) - template.count("{n}"))


def runs(half: int, chain: Chain, pick: random.Random, many: int) -> Iterator[Loop]:
    """One token for ever."""
    for _ in range(many):
        before, token = chain.passage(pick), pick.choice(_RUNS[half])
        yield Loop(before + token * _LEAST, len(before), len(token))


def _repeated(before: str, words: list[str]) -> Loop:
    cycle = "".join(words)
    return Loop(before + cycle * max(8, _LEAST // len(cycle)), len(before), len(cycle))


KINDS = {"repetition": exact, "near-repetition": near, "counter": counters, "run": runs}
