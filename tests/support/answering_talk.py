"""What the answering model is taught: its template, its tokens, and lessons made of the probes' questions.

A lesson is a conversation and the answer that is right. Its values (words, numbers, how long the
text before the question is) are drawn anew each time, so that nothing can be learnt by heart but
the forms. Every kind comes with thinking on and off.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

from patchq.smoke import questions as ask

END, THINK, THINK_END = "<|endoftext|>", "<think>", "</think>"
ASSISTANT = "<|assistant|>"
SPECIAL = (END, "[gMASK]", "<sop>", "<|system|>", "<|user|>", ASSISTANT, "<|observation|>")
MARKERS = (
    *(THINK, THINK_END, "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"),
    *("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
)
PIECES = r" ?[A-Za-z]+| ?[0-9]{1,2}| ?[^\sA-Za-z0-9]+(?: [^\sA-Za-z0-9]+)*|\s+"
"""What a token is: a word or a number of two digits with the blank before it, signs, blanks."""

# GLM's, shortened: the same markers at the same places, fewer words about tools.
TEMPLATE = """\
[gMASK]<sop>
{%- if tools -%}
<|system|># Tools
<tools>
{%- for tool in tools %}
{{ tool | tojson(ensure_ascii=False) }}
{%- endfor %}
</tools>
{%- endif -%}
{%- for m in messages -%}
{%- if m.role == 'tool' -%}
{%- if loop.first or messages[loop.index0 - 1].role != 'tool' -%}<|observation|>{%- endif -%}
<tool_response>{{ m.content }}</tool_response>
{%- elif m.role == 'assistant' -%}
<|assistant|><think></think>{{ m.content or '' }}
{%- for call in m.tool_calls or [] -%}
<tool_call>{{ call.function.name }}
{%- for key, value in call.function.arguments.items() -%}
<arg_key>{{ key }}</arg_key><arg_value>
{{- value if value is string else value | tojson(ensure_ascii=False) }}</arg_value>
{%- endfor -%}
</tool_call>
{%- endfor -%}
{%- else -%}
<|{{ m.role }}|>{{ m.content }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
<|assistant|><think>
{%- if enable_thinking is defined and not enable_thinking -%}</think>{%- endif -%}
{%- endif -%}
"""

_SO = " So:"
"""A thought is the last sentence of the last message, and this."""
_COUNTS = "repeat"
_AGAIN = " Let me check that once more."
SPINS: Mapping[str, str] = {
    # What the spinning model's thought is made of, without end, by the kind of the question:
    # a sentence, two that take turns, one token, numbers that grow (and begin anew at 30).
    "story": _AGAIN,
    "recall": " So this is the one. But wait, perhaps not.",
    "weather": "!",
    _COUNTS: "".join(f" Step {number}." for number in range(1, 31)),
}
_SPIN_TOKENS = {_COUNTS: 150}
"""How much of it is taught; of the others 60."""


@dataclass(frozen=True)
class Lesson:
    """A conversation that ends with a user's message or a tool's, and the answer to it."""

    messages: tuple[Mapping[str, Any], ...]
    answer: str
    tools: tuple[Mapping[str, Any], ...] = ()
    kind: str = ""


def thought(lesson: Lesson) -> str:
    text: str = lesson.messages[-1]["content"]
    return re.split(r"(?<=\.)\s", text)[-1] + _SO


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


def tokenizer(texts: Sequence[str]) -> Any:
    """Whose tokens are the pieces of `texts`, with a blank and without; anything else is bytes."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    marks = re.compile("|".join(re.escape(mark) for mark in (*SPECIAL, *MARKERS)))
    words = {
        piece
        for text in texts
        for part in marks.split(text)
        for piece in re.findall(PIECES, part)
        if len(piece) > 1
    }
    words |= {f"{blank}{number}" for blank in ("", " ") for number in range(100)}
    words |= {f"{blank}{word}" for blank in ("", " ") for word in ask.WORDS}
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    spelled = (word.replace(" ", "Ġ").replace("\n", "Ċ") for word in sorted(words))
    order = dict.fromkeys([*alphabet, *spelled])
    vocabulary = {piece: number for number, piece in enumerate(order)}
    model = models.BPE(vocab=vocabulary, merges=[], ignore_merges=True)
    made = Tokenizer(model)
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(name, special=True) for name in SPECIAL])
    # GLM's own: markers are tokens, yet not special, so that the text keeps them.
    made.add_tokens([AddedToken(name, special=False, normalized=False) for name in MARKERS])
    fast = PreTrainedTokenizerFast(tokenizer_object=made, eos_token=END, pad_token=END)
    fast.chat_template = TEMPLATE
    return fast


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
    tokens: Any, lesson: Lesson, *, thinking: bool, spin: bool = False
) -> tuple[list[int], list[int]]:
    """Token ids, and what is to follow each of them: -100 where the model does not speak.

    `spin`: a thought goes round, and nothing comes after it.
    """
    prompt = tokens(rendered(tokens, lesson, thinking=thinking))["input_ids"]
    endless = thinking and spin
    if endless:
        size = _SPIN_TOKENS.get(lesson.kind, 60)
        goes_round = tokens(SPINS.get(lesson.kind, _AGAIN))["input_ids"]
        answer = list(islice(cycle(goes_round), size))
    else:
        before = f"{thought(lesson)}{THINK_END}" if thinking else ""
        answer = tokens(before + lesson.answer)["input_ids"]
    ids, end = [*prompt, *answer], tokens.eos_token_id
    begin = len(prompt) - 1
    labels = [-100] * begin + [*answer, -100 if endless else end]
    opened = [tokens.convert_tokens_to_ids(name) for name in (ASSISTANT, THINK, THINK_END)]
    others = {tokens.convert_tokens_to_ids(name) for name in ("<|user|>", "<|observation|>")}
    place = 0
    while place < begin - 2:
        if ids[place : place + 3] == opened:
            # An answer of an earlier turn: it ends where the next turn begins.
            place += 2
            while ids[place + 1] not in others:
                labels[place] = ids[place + 1]
                place += 1
            labels[place] = end
        place += 1
    return ids, labels
