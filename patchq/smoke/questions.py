"""What the probes ask, and the answers that are right: every prompt, tool and schema.

The words are few and the forms fixed, so that a model of some thousand weights can be taught to
answer them (tests/support/answering.py); the values vary with the seed of a run, so that no answer
lies in a cache of yesterday.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

WORDS = (
    *("amber", "birch", "cedar", "cobalt", "copper", "coral", "ember", "falcon"),
    *("garnet", "harbor", "indigo", "jasper", "lemon", "maple", "marble", "nickel"),
    *("olive", "opal", "orchid", "pepper", "quartz", "raven", "saffron", "silver"),
    *("topaz", "umber", "violet", "walnut", "willow", "zinc", "lotus", "meadow"),
)
NUMBERS = range(10, 100)

OK = "OK"
DONE = "DONE"
ALPHABET = (
    *("Alfa", "Bravo", "Charlie", "Delta", "Echo", "Foxtrot", "Golf", "Hotel", "India"),
    *("Juliett", "Kilo", "Lima", "Mike", "November", "Oscar", "Papa", "Quebec", "Romeo"),
    *("Sierra", "Tango", "Uniform", "Victor", "Whiskey", "X-ray", "Yankee", "Zulu"),
)
PLANETS = ("Mercury", "Venus", "Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
RECITED = (*ALPHABET, *PLANETS, *DAYS, DONE)
"""The long answer, a line each: no word comes twice, so that each decides the next."""

ASK_CODE = "Reply with the code alone."
ASK_TOWN = "Reply with the town alone."
ASK_OK = "Reply with OK alone."
RECITE = (
    "Write the NATO alphabet from Alfa to Zulu, then the planets from Mercury to Neptune, then"
    " the days from Monday to Sunday, one word a line. Then write DONE."
)
STORY = "Think about it first, then write one sentence about {word}."
FILLER = (
    "The road to the coast was long and dry.",
    "A train came in late and nobody minded.",
    "Two boats were tied to the old stone wall.",
    "The baker closed his shop before noon.",
    "Rain fell on the hills until the evening.",
    "She wrote a letter and kept it for a year.",
    "The clock in the hall had stopped again.",
    "They sold apples, bread and candles there.",
)
"""A long prompt is these sentences in turn, one a line."""

WEATHER: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a town.",
        "parameters": {
            "type": "object",
            "properties": {"town": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["town", "days"],
            "additionalProperties": False,
        },
    },
}
DOOR: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": "open_door",
        "description": "Opens a door and says what is behind it.",
        "parameters": {
            "type": "object",
            "properties": {"door": {"type": "integer"}},
            "required": ["door"],
            "additionalProperties": False,
        },
    },
}
PET: Mapping[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
DOORS = 20
"""Calls of the tool loop; the last door has a word behind it."""


def code(word: str, number: int) -> str:
    """A code as it is told and as it is to be said: `amber 42`."""
    return f"{word} {number}"


def told(code: str) -> str:
    return f"The code is {code}."


def recall(code: str) -> str:
    """The whole answer is `code`."""
    return f"{told(code)} {ASK_CODE}"


def turns(code: str, town: str) -> tuple[tuple[str, str], ...]:
    """What the user says in turn, and the whole answer to each."""
    return (
        (f"{told(code)} {ASK_OK}", OK),
        (f"The town is {town}. {ASK_OK}", OK),
        (ASK_CODE, code),
        (ASK_TOWN, town),
    )


def repeat(words: tuple[str, ...]) -> str:
    """The whole answer is the words with a blank between; the third is the stop string."""
    return f"Repeat these words and nothing else: {' '.join(words)}"


def pet(name: str, age: int) -> str:
    """The answer is the JSON object {"name": name, "age": age} (`PET`)."""
    return f"The cat {name} is {age} years old. Reply with its name and age as JSON."


def weather(town: str, days: int) -> str:
    """The answer is get_weather(town=town, days=days)."""
    return f"How is the weather in {town} for {days} days? Use the tool."


def doors(first: int) -> str:
    """The answer is open_door(door=first), and so on until a door has a word: that alone."""
    return (
        f"Open door {first}. Each door names the next one to open. Go on until a door names a"
        " word, then reply with the word alone."
    )


def behind(door: int | str) -> str:
    """What the tool says: the next door, or the word at the end."""
    if isinstance(door, int):
        return f"The next door is {door}."
    return f"The word is {door}."


def story(word: str) -> str:
    """Asked with thinking on: a thought that ends, then a sentence."""
    return STORY.format(word=word)


def long(mark: str, code: str, sentences: int) -> str:
    """A long prompt that no other run has; the whole answer is `code`.

    `mark` comes first, so that no earlier prompt shares a block with it.
    """
    lines = [f"Note {mark}.", told(code)]
    lines += [FILLER[number % len(FILLER)] for number in range(sentences)]
    return "\n".join([*lines, ASK_CODE])


def fresh_seed() -> int:
    """One that no run had."""
    return random.SystemRandom().randrange(1 << 32)


@dataclass(frozen=True)
class Values:
    """What a run puts into its questions, from its seed and a name."""

    seed: int

    def draw(self, what: str) -> random.Random:
        """The numbers for one question; the same for the same seed and name."""
        return random.Random(f"{self.seed} {what}")  # noqa: S311  (nothing secret)

    def codes(self, what: str, count: int) -> tuple[str, ...]:
        """Different in word and number."""
        drawn = self.draw(what)
        words, numbers = drawn.sample(WORDS, count), drawn.sample(NUMBERS, count)
        return tuple(code(*each) for each in zip(words, numbers, strict=True))

    def words(self, what: str, count: int) -> tuple[str, ...]:
        return tuple(self.draw(what).sample(WORDS, count))

    def mark(self, what: str) -> str:
        """Two codes: one of some million."""
        return " ".join(self.codes(f"mark {what}", 2))
