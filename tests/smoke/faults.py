"""Faults of the fake server's answers, by name: each spoils what one probe asks for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from patchq.smoke import questions as q
from patchq.smoke.probes import image
from tests.smoke.brain import Thought

BLOCK = 16
"""Tokens of a block of the fake's cache."""
FAR = 2000
"""Tokens of a prompt beyond which the fake may not see its beginning."""


@dataclass(frozen=True)
class Given:
    """A request: its body, the user's last message, its prompt's length, and what was cached."""

    body: Mapping[str, Any]
    last: str
    length: int
    cached: int


def spoiled(thought: Thought, faults: frozenset[str], values: q.Values, given: Given) -> Thought:
    """The right answer, with what the faults make of it."""
    body, last, cached, length = given.body, given.last, given.cached, given.length
    switch = body.get("chat_template_kwargs", {}).get("enable_thinking", True)
    if "thought leaked" in faults and not switch and last.startswith("The code"):
        return replace(thought, content=f"Let me see.</think>\n{thought.content}")
    if "no answer" in faults and switch and last.startswith("The code"):
        return replace(thought, content="")
    if "stops thoughts" in faults and switch and "stop" in body:
        return replace(thought, reasoning="I repeat", content="")
    if "markup" in faults and thought.name == "get_weather":
        return replace(thought, content="</arg_value>")
    if "texts" in faults and thought.name == "get_weather" and body.get("tool_choice") == "auto":
        return replace(thought, arguments={**(thought.arguments or {}), "days": "3"})
    if "not forced" in faults and isinstance(body.get("tool_choice"), dict):
        return Thought(content="It is sunny.")
    if "round and round" in faults and "next door" in last:
        return replace(thought, arguments=json.loads(_first_call(body)))
    if "forgets" in faults and last == q.ASK_TOWN:
        return Thought(content="Paris")
    if "locked" in faults and last == q.RECITE:
        return Thought(content="lock" * 2000)
    if "spinning" in faults and "one sentence about" in last:
        return replace(thought, reasoning="Wait, let me think again. " * 400)
    if "wrong form" in faults and "response_format" in body:
        return Thought(content='{"name": "Tom"')
    if "corrupt" in faults and cached and last.startswith("Note"):
        return Thought(content="!!!!")
    if "corrupt at the end" in faults and length - cached == BLOCK and "prompt" in body:
        return Thought(content="!!!!")
    if "short-sighted" in faults and length > FAR and last.startswith("Note"):
        return replace(thought, content="amber 10")
    if "colour-blind" in faults and last.startswith(image.ASK):
        return Thought(content="Green.")
    if "mixed" in faults and thought.content in (four := values.codes("four", 4)):
        return Thought(content=four[0])
    return thought


def _first_call(body: Mapping[str, Any]) -> str:
    calls = [each["tool_calls"] for each in body["messages"] if "tool_calls" in each]
    return str(calls[0][0]["function"]["arguments"])
