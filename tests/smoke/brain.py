"""What a good model answers to the questions of patchq/smoke/questions.py, for the fake server."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from patchq.smoke import questions as q
from patchq.smoke.probes import image

_CODE = re.compile(r"The code is (\w+ \d+)\.")
_TOWN = re.compile(r"The town is (\w+)\.")


@dataclass(frozen=True)
class Thought:
    """What the model has to say: a thought, a text, a call."""

    reasoning: str = ""
    content: str = ""
    name: str = ""
    arguments: Mapping[str, Any] | None = None


def think(messages: Sequence[Mapping[str, Any]], *, thinking: bool) -> Thought:
    """The right answer to the last message."""
    last = str(messages[-1]["content"])
    said = "\n".join(str(each.get("content")) for each in messages)
    thought = _answer(last, said)
    return (
        replace(thought, reasoning=f"I have to say this: {thought.content}")
        if thinking
        else thought
    )


def _answer(last: str, said: str) -> Thought:
    if found := re.fullmatch(r"The word is (\w+)\.", last):
        return Thought(content=found[1])
    if found := re.match(r"(?:The next door is|Open door) (\d+)\.", last):
        return Thought(name="open_door", arguments={"door": int(found[1])})
    if found := re.match(r"How is the weather in (\w+) for (\d) days", last):
        return Thought(name="get_weather", arguments={"town": found[1], "days": int(found[2])})
    if found := re.match(r"The cat (\w+) is (\d) years old", last):
        return Thought(content=json.dumps({"name": found[1], "age": int(found[2])}))
    if last == q.RECITE:
        return Thought(content="\n".join(q.RECITED))
    if found := re.match(r"Repeat these words and nothing else: (.*)", last):
        return Thought(content=found[1])
    if found := re.search(r"one sentence about (\w+)", last):
        return Thought(content=f"There was much to see of {found[1]} in those days.")
    if last.endswith(q.ASK_CODE):
        return Thought(content=_CODE.findall(said)[-1])
    if found := re.fullmatch(rf"{re.escape(image.ASK)} It is (\w+)\.", last):
        red, _, blue = bytes.fromhex(found[1])
        return Thought(content="Red." if red > blue else "Blue.")
    if last == q.ASK_TOWN:
        return Thought(content=_TOWN.findall(said)[-1])
    assert last.endswith(q.ASK_OK), f"no probe asks {last!r}"
    return Thought(content=q.OK)
