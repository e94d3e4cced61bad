"""The golden conversations: what every chat template is rendered with, the same everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

NOW = datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001  (what strftime_now tells has no zone)
"""When the conversations take place, for templates that name the date."""
TOKENS = {name: f"<{name[:3]}>" for name in ("bos_token", "eos_token", "pad_token", "unk_token")}
"""Stand-ins: the goldens are the template's, whatever tokenizer it comes with."""

THINKING = {"enable_thinking": True, "thinking": True}
NOT_THINKING = {"enable_thinking": False, "thinking": False}
"""The switch has either name; a template does not see the one that it does not know."""


@dataclass(frozen=True)
class Conversation:
    """`values`: what a request adds (chat_template_kwargs)."""

    name: str
    messages: tuple[Mapping[str, Any], ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)


def _says(role: str, content: str, **more: Any) -> Mapping[str, Any]:
    return {"role": role, "content": content, **more}


_HELLO = _says("user", "Which is larger, 9.9 or 9.11?")
_WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a town.",
        "parameters": {
            "type": "object",
            "properties": {
                "town": {"type": "string", "description": "Its name"},
                "days": {"type": "integer"},
            },
            "required": ["town"],
        },
    },
}
_CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": {"town": "Zürich", "days": 2}},
}

PLAIN = Conversation("plain", (_HELLO,))
ON = Conversation("thinking", (_HELLO,), values=THINKING)
OFF = Conversation("thinking-off", (_HELLO,), values=NOT_THINKING)
TOOLS = Conversation(
    "tools",
    (
        _says("system", "Answer in one sentence."),
        _says("user", "How is the weather in Zürich?"),
        _says("assistant", "", reasoning_content="I have to ask.", tool_calls=[_CALL]),
        _says("tool", '{"sky": "<clear>", "degrees": 21}', tool_call_id="call_1"),
    ),
    (_WEATHER,),
)
TURNS = Conversation(
    "multi-turn",
    (
        _says("system", "You are brief."),
        _HELLO,
        _says("assistant", "9.9 is.", reasoning_content="9.90 against 9.11."),
        _says("user", "And 9.90?\nSay  why."),
        _says("assistant", "The same."),
        _says("user", "Thanks."),
    ),
)
ALL = (PLAIN, ON, OFF, TOOLS, TURNS)
