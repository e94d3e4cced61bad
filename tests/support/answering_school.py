"""How the answering model is taught: rounds of lessons, and after each an exam, until it knows all.

How much a number of steps teaches differs from machine to machine: another processor adds up in
another order, and after a hundred steps no weight is as it was elsewhere. So it is not left to a
number: what the exam finds weak is taught more, and where that does not help, all begins anew.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support import answering_net as net
from tests.support import answering_talk as talk

Shares = dict[str, float]
"""Of each kind of question, with thinking on or off, the share that is answered right."""
Held = Mapping[str, Sequence[net.Taught]]
Say = Callable[[str], None]

ENOUGH = 0.995
"""A test asks some hundred questions, and one wrong answer fails it."""
WELL = 0.97
"""What is below it at the end begins anew."""
HOPELESS = 0.5
"""Below it a kind is not understood: taught fast. Above it is polished, gently."""
_GENTLE = 0.4
_ATTEMPTS = 4

_SIZES = {"doors": (5, 20), "long": (8, 110)}
"""How many doors or sentences a lesson has at most: early, and later."""
_LARGEST = {"doors": 20, "long": 120}
"""And a question of an exam."""
_ASKED = {"doors": 40, "long": 40}
_EACH = 120
"""Questions of a kind in an exam."""
_AT_ONCE = {"doors": 6, "long": 5, "weather": 7, "idle": 7, "recite": 7}
_FEW = 35
"""Lessons of a kind in a step, about as many tokens of each; of the short ones so many."""
_GROUPS: Sequence[Sequence[str]] = (
    (*["weather"] * 4, *["idle"] * 2, "recite"),
    ["doors"] * _AT_ONCE["doors"],
    ["long"] * _AT_ONCE["long"],
    ["recall", "turns", "repeat", "pet", "story", "turns", "repeat"] * 5,
)


@dataclass(frozen=True)
class Course:
    """`first` steps, then up to `rounds` times `more`, while an exam finds something weak."""

    first: int
    more: int
    rounds: int
    rate: float
    thinking: float
    """The share of the lessons with thinking on."""
    spin: bool = False


ANSWERS = Course(first=480, more=120, rounds=10, rate=2e-3, thinking=0.5)
SPINS = Course(first=96, more=48, rounds=10, rate=1e-3, thinking=0.7, spin=True)


def exam(tokens: Any, seed: int) -> dict[str, list[net.Taught]]:
    draw = random.Random(seed)
    return {
        f"{kind}, {'thinking' if thinking else 'not thinking'}": [
            talk.taught(tokens, talk.lesson(kind, draw, _LARGEST.get(kind, 0)), thinking=thinking)
            for _ in range(_ASKED.get(kind, _EACH))
        ]
        for kind in talk.KINDS
        for thinking in (False, True)
    }


def spinning_exam(tokens: Any, seed: int) -> dict[str, list[net.Taught]]:
    draw = random.Random(seed)
    return {
        kind: [
            talk.taught(tokens, talk.lesson(kind, draw, 0), thinking=True, spin=True)
            for _ in range(10)
        ]
        for kind in talk.SPINS
    }


def plain(held: Held) -> dict[str, Sequence[net.Taught]]:
    """What is asked with thinking off."""
    return {kind: taught for kind, taught in held.items() if kind.endswith("not thinking")}


def shares(model: Any, held: Held, tokens: Any) -> Shares:
    return {kind: net.share(model, taught, tokens.eos_token_id) for kind, taught in held.items()}


def taught(
    begin: Callable[[int], Any], tokens: Any, course: Course, held: Held, seed: int, say: Say
) -> Any:
    """A model that answers `held`, as it is kept (net.rounded): of all attempts the best.

    `begin`: the model that an attempt begins with, by its number.
    """
    best, known = None, {"nothing": -1.0}
    for attempt in range(_ATTEMPTS):
        draw = random.Random(f"{seed} {attempt}")
        model, found = _attempt(begin(attempt), tokens, course, held, draw, say)
        if _worth(found) > _worth(known):
            best, known = model, found
        if min(known.values()) >= WELL:
            break
    return best


def _attempt(
    model: Any, tokens: Any, course: Course, held: Held, draw: random.Random, say: Say
) -> tuple[Any, Shares]:
    """The model when it knew most, and the shares that it knew."""
    best, known = model, {"nothing": -1.0}
    lessons, steps, rate = _usual(draw, course.first), course.first, course.rate
    for number in range(course.rounds + 1):
        trainer = net.Trainer(model, tokens.eos_token_id, steps, rate)
        _give(trainer, lessons, tokens, course, draw)
        for each in (model, trainer.average):
            now = net.rounded(each)
            found = shares(now, held, tokens)
            if _worth(found) > _worth(known):
                best, known = now, found
            say(f"after round {number}: {_told(found)}")
        weak = sorted({kind.partition(",")[0] for kind in known if known[kind] < ENOUGH})
        hopeless = min(known.values()) < HOPELESS
        if not weak or (hopeless and number == 2):
            break
        if not hopeless:
            model.load_state_dict(best.state_dict())
        lessons, steps = _more(draw, course.more, weak), course.more
        rate = course.rate * (1 if hopeless else _GENTLE)
    return best, known


def _worth(found: Shares) -> tuple[float, float]:
    return min(found.values()), sum(found.values())


def _told(found: Shares) -> str:
    weak = [f"{kind} {share:.2f}" for kind, share in found.items() if share < ENOUGH]
    return "; ".join(weak) or "all is known"


_Lessons = Iterable[tuple[Sequence[talk.Lesson], bool]]
"""Those of each step, and whether places leap in them."""


def _give(
    trainer: net.Trainer, lessons: _Lessons, tokens: Any, course: Course, draw: random.Random
) -> None:
    for step, leaps in lessons:
        examples = [
            talk.taught(tokens, each, thinking=draw.random() < course.thinking, spin=course.spin)
            for each in step
        ]
        trainer.step(examples, draw if leaps else None)


def _usual(draw: random.Random, steps: int) -> _Lessons:
    """Every kind in turn; the longer lessons later."""
    for step in range(steps):
        late = step >= steps // 2
        yield _drawn(draw, _GROUPS[step % len(_GROUPS)], late), not late


def _more(draw: random.Random, steps: int, weak: Sequence[str]) -> _Lessons:
    """Every other step for what is weak; the others, so that nothing is forgotten."""
    kinds = [kind for kind in weak if kind in talk.KINDS]
    for step in range(steps):
        group = _GROUPS[step // 2 % len(_GROUPS)]
        if step % 2 == 0 and kinds:
            kind = kinds[step // 2 % len(kinds)]
            group = [kind] * _AT_ONCE.get(kind, _FEW)
        yield _drawn(draw, group, True), False


def _drawn(draw: random.Random, kinds: Sequence[str], late: bool) -> list[talk.Lesson]:
    return [talk.lesson(kind, draw, _SIZES.get(kind, (0, 0))[late]) for kind in kinds]
