"""What the answering model is taught: lessons, made of the probes' questions.

A lesson is a conversation and the answer that is right. Its values (words, numbers, how long the
text before the question is) are drawn anew each time, so that nothing can be learnt by heart but
the forms. Every kind comes with thinking on and off.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

from patchq.smoke import questions as ask
from tests.support.answering_tokens import ASSISTANT, THINK, THINK_END

_THOUGHTS: Mapping[str, str] = {
    # What a thought takes up, by how the question ends.
    ask.ASK_CODE: "The code alone.",
    ask.ASK_TOWN: "The town alone.",
    ask.ASK_OK: "OK alone.",
    "reply with the word alone.": "The word alone.",
    "with its name and age as JSON.": "Its name and age as JSON.",
    "Then write DONE.": "Then write DONE.",
    "Use the tool.": "Use the tool.",
}
AGAIN = " Let me check that once more."
"""What its thought is made of at any other question."""
SPINS: Mapping[str, str] = {
    # What the spinning model's thought is made of, without end, by how the question ends, or by
    # its kind: two sentences that take turns, one token, numbers that grow (and begin anew at 30).
    ask.ASK_CODE: " So this is the one. But wait, perhaps not.",
    "Use the tool.": "!",
    "repeat": "".join(f" Step {number}." for number in range(1, 31)),
}
_SPIN_TOKENS = 150
"""How much of it is taught."""
_CUT = 40
"""And how much after a thought that was ended."""
SILENT = -100
"""The label where the model does not speak."""
Taught = tuple[list[int], list[int]]
"""Token ids, and what is to follow each of them."""


@dataclass(frozen=True)
class Lesson:
    """A conversation that ends with a user's message or a tool's, and the answer to it."""

    messages: tuple[Mapping[str, Any], ...]
    answer: str
    tools: tuple[Mapping[str, Any], ...] = ()
    kind: str = ""


def thought(lesson: Lesson) -> str:
    """It takes up how the question ends, or what a tool said.

    Its own end stands as far from the answer as the prompt's does where no thought is: so the same
    rules answer both.
    """
    last = lesson.messages[-1]
    text: str = last["content"]
    if last["role"] == "tool":
        return f"It is {text.removesuffix('.').rpartition(' ')[2]}. So now:"
    if lesson.kind == "repeat":
        words = text.partition(": ")[2].split()
        return f"Repeat {', '.join(words)}. So:"
    if lesson.kind == "story":
        return f"One sentence {' '.join(text.split()[-2:])} So:"
    return next(said for end, said in _THOUGHTS.items() if text.endswith(end)) + " So:"


def spinning(lesson: Lesson) -> str:
    """What the spinning model's thought is made of."""
    text: str = lesson.messages[-1]["content"]
    for end, round_ in SPINS.items():
        if end in (lesson.kind, text[-len(end) :]):
            return round_
    return AGAIN


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def called(name: str, **arguments: Any) -> dict[str, Any]:
    call = {"type": "function", "id": "0", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def markup(name: str, **arguments: Any) -> str:
    pairs = (
        f"<arg_key>{key}</arg_key><arg_value>{value}</arg_value>"
        for key, value in arguments.items()
    )
    return f"<tool_call>{name}{''.join(pairs)}</tool_call>"


def _code(draw: random.Random) -> str:
    return ask.code(draw.choice(ask.WORDS), draw.choice(ask.NUMBERS))


def _recall(draw: random.Random, size: int) -> Lesson:
    code = _code(draw)
    return Lesson((said(ask.recall(code)),), code)


def _turns(draw: random.Random, size: int) -> Lesson:
    code, town = _code(draw), draw.choice(ask.WORDS)
    turns = ask.turns(code, town)
    upto = draw.randint(2, 4)
    asked = [*turns[:2], *draw.sample(turns[2:], 2)][:upto]
    messages: list[Mapping[str, Any]] = []
    for text, answer in asked:
        messages += [said(text), {"role": "assistant", "content": answer}]
    return Lesson(tuple(messages[:-1]), messages[-1]["content"])


def _repeat(draw: random.Random, size: int) -> Lesson:
    words = tuple(draw.sample(ask.WORDS, draw.randint(3, 8)))
    return Lesson((said(ask.repeat(words)),), " ".join(words))


def _pet(draw: random.Random, size: int) -> Lesson:
    name, age = draw.choice(ask.WORDS), draw.randint(1, 99)
    return Lesson((said(ask.pet(name, age)),), json.dumps({"name": name, "age": age}))


def _story(draw: random.Random, size: int) -> Lesson:
    word = draw.choice(ask.WORDS)
    return Lesson((said(ask.story(word)),), f"The {word} stood by the road to the coast.")


def _recite(draw: random.Random, size: int) -> Lesson:
    return Lesson((said(ask.RECITE),), "\n".join(ask.RECITED))


def _tools(draw: random.Random, needed: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    both = [ask.WEATHER, ask.DOOR]
    draw.shuffle(both)
    return tuple(both) if draw.random() < 0.3 else (needed,)


def _idle(draw: random.Random, size: int) -> Lesson:
    """Tools are there, and none is asked for."""
    plain = _recall(draw, size)
    return Lesson(plain.messages, plain.answer, (ask.WEATHER, ask.DOOR))


def _weather(draw: random.Random, size: int) -> Lesson:
    town, days = draw.choice(ask.WORDS), draw.randint(1, 99)
    call = markup("get_weather", town=town, days=days)
    return Lesson((said(ask.weather(town, days)),), call, _tools(draw, ask.WEATHER))


def _doors(draw: random.Random, size: int) -> Lesson:
    # Every length, and the first call often.
    doors = draw.sample(range(1, 100), draw.choice((1, draw.randint(1, size))))
    messages = [said(ask.doors(doors[0]))]
    behind: list[int | str] = [*doors[1:], draw.choice(ask.WORDS)]
    for door, found in zip(doors, behind, strict=True):
        messages += [called("open_door", door=door), {"role": "tool", "content": ask.behind(found)}]
    return Lesson(tuple(messages), str(behind[-1]), _tools(draw, ask.DOOR))


def _long(draw: random.Random, size: int) -> Lesson:
    first, second, code = (_code(draw) for _ in range(3))
    sentences = draw.randint(0, size)
    return Lesson((said(ask.long(f"{first} {second}", code, sentences)),), code)


KINDS: Mapping[str, Callable[[random.Random, int], Lesson]] = {
    "recall": _recall,
    "turns": _turns,
    "repeat": _repeat,
    "pet": _pet,
    "story": _story,
    "recite": _recite,
    "idle": _idle,
    "weather": _weather,
    "doors": _doors,
    "long": _long,
}


def lesson(kind: str, draw: random.Random, size: int) -> Lesson:
    """`size`: how many doors or sentences at most."""
    made = KINDS[kind](draw, size)
    return Lesson(made.messages, made.answer, made.tools, kind)


def rendered(tokens: Any, lesson: Lesson, *, thinking: bool) -> str:
    """What the model is given, by the template."""
    text: str = tokens.apply_chat_template(
        list(lesson.messages),
        tools=list(lesson.tools) or None,
        tokenize=False,
        add_generation_prompt=True,
        enable_thinking=thinking,
    )
    return text


def taught(
    tokens: Any, lesson: Lesson, *, thinking: bool, spin: bool = False, cut: int = 0
) -> Taught:
    """`spin`: a thought goes round, and nothing comes after it; `cut`: but that after so many
    tokens the runner ends it, and it goes round in the answer."""
    prompt = tokens(rendered(tokens, lesson, thinking=thinking))["input_ids"]
    end, silent = tokens.eos_token_id, len(prompt) - 1
    if thinking and spin:
        goes_round = list(islice(cycle(tokens(spinning(lesson))["input_ids"]), _SPIN_TOKENS))
        wanted = [*goes_round, SILENT]
        answer = goes_round
        if cut:
            answer = [*goes_round[:cut], tokens.convert_tokens_to_ids(THINK_END), *answer[:_CUT]]
            wanted = [*answer[:cut], SILENT, *answer[cut + 1 :], SILENT]
    else:
        before = f"{thought(lesson)}{THINK_END}" if thinking else ""
        answer = tokens(before + lesson.answer)["input_ids"]
        wanted = [*answer, end]
    ids, labels = [*prompt, *answer], [SILENT] * silent + wanted
    opened = [tokens.convert_tokens_to_ids(name) for name in (ASSISTANT, THINK, THINK_END)]
    others = {tokens.convert_tokens_to_ids(name) for name in ("<|user|>", "<|observation|>")}
    place = 0
    while place < silent - 2:
        if ids[place : place + 3] == opened:
            # An answer of an earlier turn: it ends where the next turn begins.
            place += 2
            while ids[place + 1] not in others:
                labels[place] = ids[place + 1]
                place += 1
            labels[place] = end
        place += 1
    return ids, labels
