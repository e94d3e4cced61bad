"""Tools and forms: typed arguments, forced and free calls, no markup in texts, a long loop."""

from __future__ import annotations

import json
import re
from typing import Any

from patchq.smoke import questions as q
from patchq.smoke.asking import Asking, excerpt
from patchq.smoke.model import Wrong
from patchq.smoke.report import Probe
from patchq.smoke.stream import Call, Reply

_MARKUP = re.compile(r"</?(?:tool_call|arg_key|arg_value)>?")
_TOO_OFTEN = 3
_DAYS = range(2, 10)


def _structured(asking: Asking) -> str:
    (name,) = asking.values.words("pet", 1)
    age = asking.values.draw("age").choice(_DAYS)
    form = {"type": "json_schema", "json_schema": {"name": "pet", "schema": q.PET}}
    reply = asking.user(q.pet(name, age), response_format=form)
    wanted = {"name": name, "age": age}
    if not _same(found := _parsed(reply.answer, "the answer"), wanted):
        raise Wrong(f"it answers {json.dumps(found)}, not {json.dumps(wanted)}")
    return f"it answers {json.dumps(found)}"


def _auto(asking: Asking) -> str:
    return _weather(asking, "auto", "auto")


def _forced(asking: Asking) -> str:
    named = {"type": "function", "function": {"name": q.WEATHER["function"]["name"]}}
    return _weather(asking, "forced", named)


def _weather(asking: Asking, what: str, choice: Any) -> str:
    (town,) = asking.values.words(f"weather {what}", 1)
    days = asking.values.draw(f"days {what}").choice(_DAYS)
    tools = [q.WEATHER, q.DOOR]
    reply = asking.user(q.weather(town, days), tools=tools, tool_choice=choice)
    call = _only(reply)
    _require(call, "get_weather", {"town": town, "days": days})
    return f"it calls {call.name} with {call.arguments}"


def _only(reply: Reply) -> Call:
    if len(reply.calls) != 1:
        raise Wrong(f"{len(reply.calls)} calls came, not one; the text is {excerpt(reply.content)}")
    return reply.calls[0]


def _require(call: Call, name: str, wanted: dict[str, Any]) -> None:
    if call.name != name:
        raise Wrong(f"it calls {excerpt(call.name)}, not {name}")
    found = _parsed(call.arguments, "the arguments")
    if not _same(found, wanted):
        raise Wrong(f"its arguments are {json.dumps(found)}, not {json.dumps(wanted)}")


def _parsed(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise Wrong(f"{what} is no JSON: {excerpt(text)}") from None


def _same(found: Any, wanted: dict[str, Any]) -> bool:
    """Equal, in their types as well: 1 is not "1", nor true."""
    return (
        isinstance(found, dict)
        and found == wanted
        and all(type(found[key]) is type(value) for key, value in wanted.items())
    )


def _markup(asking: Asking) -> str:
    (code,), (town,) = asking.values.codes("markup", 1), asking.values.words("markup town", 1)
    tools = [q.WEATHER, q.DOOR]
    plain = asking.user(q.recall(code), tools=tools)
    called = asking.user(q.weather(town, _DAYS[0]), tools=tools)
    for reply in (plain, called):
        texts = [reply.content, reply.reasoning, *(call.arguments for call in reply.calls)]
        for text in texts:
            if found := _MARKUP.search(text):
                raise Wrong(f"{found[0]} stands in what the user sees: {excerpt(text)}")
    if plain.calls:
        raise Wrong(f"it calls {excerpt(plain.calls[0].name)} where no tool is asked for")
    asking.expect(plain, code)
    return "no markup, with and without a call"


def _loop(asking: Asking) -> str:
    drawn = asking.values.draw("doors")
    doors, word = drawn.sample(q.NUMBERS, q.DOORS), drawn.choice(q.WORDS)
    behind: dict[Any, int | str] = dict(zip(doors, [*doors[1:], word], strict=True))
    messages: list[dict[str, Any]] = [{"role": "user", "content": q.doors(doors[0])}]
    asking.evidence["opened"] = opened = []
    while (reply := asking.chat(messages, tools=[q.DOOR])).calls:
        call = _only(reply)
        found = _parsed(call.arguments, "the arguments")
        door = found.get("door") if isinstance(found, dict) else None
        opened.append(door)
        if door not in behind:
            raise Wrong(f"call {len(opened)} is {call.name} {excerpt(call.arguments)}: no such")
        _require(call, "open_door", {"door": door})
        if opened.count(door) == _TOO_OFTEN:
            raise Wrong(f"call {len(opened)} opens door {door} for the third time")
        number = f"call_{len(opened)}"
        given = {"name": call.name, "arguments": call.arguments}
        said = {"id": number, "type": "function", "function": given}
        messages.append({"role": "assistant", "content": "", "tool_calls": [said]})
        messages.append({"role": "tool", "tool_call_id": number, "content": q.behind(behind[door])})
    if opened != doors:
        raise Wrong(f"after {len(opened)} calls it says {excerpt(reply.answer)}")
    asking.expect(reply, word)
    return f"{len(opened)} calls, each another, then {word}"


PROBES = (
    Probe(
        "structured",
        "a name and an age, as JSON by a schema",
        "the answer is JSON with just these values in their types",
        "grammars that end wrongly with drafts (vLLM #52805, #53046)",
        _structured,
    ),
    Probe(
        "tool-auto",
        "the weather of a town, with two tools",
        "one call, the right tool, arguments equal in type",
        "missing calls, arguments as texts (vLLM #49248, #54971, #47190)",
        _auto,
    ),
    Probe(
        "tool-forced",
        "the same, with the tool named by the request",
        "one call, the right tool, arguments equal in type",
        "forced calls that fail to parse (vLLM #49248)",
        _forced,
    ),
    Probe(
        "markup",
        "with tools there: a code, and the weather",
        "no piece of tool markup in content, thought or arguments",
        "tool markup in the text: 4.2 % at temperature 1 (0xSero PR #3)",
        _markup,
    ),
    Probe(
        "tool-loop",
        "to open 20 doors, each naming the next, then to say a word",
        "20 calls in order, none of them three times, then the word",
        "agents that make one call for ever (opencode #45533)",
        _loop,
    ),
)
