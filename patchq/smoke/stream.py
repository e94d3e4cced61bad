"""A streamed answer: server-sent events in, a reply out, under the watch for spinning.

The events are https://html.spec.whatwg.org/multipage/server-sent-events.html (data lines alone),
their JSON OpenAI's chat.completion.chunk and text_completion with vLLM's additions
(`reasoning`, `stop_reason`, `reasoning_closed`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from patchq.smoke.model import NotRun
from patchq.smoke.spin import Limits, Spin, Watch

MAX_EVENT = 1 << 20
_DONE = "[DONE]"
_NO_ANSWER = (ValueError, TypeError, AttributeError, KeyError, OverflowError, RecursionError)
"""What reading an event raises that has another form."""


@dataclass
class Call:
    """A tool call; `arguments` is JSON text, as it came."""

    name: str = ""
    arguments: str = ""
    id: str = ""


@dataclass
class Reply:
    """An answer. Times in seconds from the request; token counts are the server's, or None.

    `spin`: the request was stopped because of it, so that `finish` is empty.
    """

    content: str = ""
    reasoning: str = ""
    calls: list[Call] = field(default_factory=list)
    finish: str = ""
    stop_reason: str = ""
    closed: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    spin: Spin | None = None
    first: float | None = None
    seconds: float = 0.0

    @property
    def answer(self) -> str:
        """The content without blanks around it and without a thought that leaked into it."""
        return self.content.rpartition("</think>")[2].strip()


def events(chunks: Iterable[bytes]) -> Iterator[str]:
    """The data of each event. Raises NotRun for what is cut short, not UTF-8, or without end."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > MAX_EVENT:
            raise NotRun("a line of the stream has no end")
        for line in lines:
            if not line.startswith(b"data:"):
                continue
            try:
                data = line[5:].decode("utf-8").strip()
            except UnicodeDecodeError:
                raise NotRun("the stream is not UTF-8") from None
            if data == _DONE:
                return
            yield data
    raise NotRun("the stream was cut: it ended before [DONE]")


class Gatherer:
    """Puts a reply together, event by event."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.reply = Reply()
        self._watch = Watch(limits)

    def take(self, data: str) -> bool:
        """False where the stream need not go on: it spins. Raises NotRun for what is no answer."""
        try:
            event = json.loads(data)
            if error := event.get("error"):
                told = error.get("message", "") if isinstance(error, Mapping) else error
                raise NotRun(f"the server broke off: {str(told)[:200]}")
            self._usage(event.get("usage"))
            for choice in event.get("choices") or ():
                self._choice(choice)
        except _NO_ANSWER:
            raise NotRun(f"the stream has what is no answer: {data[:80]!r}") from None
        return self.reply.spin is None

    def end(self) -> Reply:
        """The whole reply."""
        self.reply.spin = self.reply.spin or self._watch.end()
        return self.reply

    def _usage(self, usage: Mapping[str, Any] | None) -> None:
        if usage:
            self.reply.prompt_tokens = _count(usage.get("prompt_tokens"))
            self.reply.completion_tokens = _count(usage.get("completion_tokens"))
            details = usage.get("prompt_tokens_details") or {}
            self.reply.cached_tokens = _count(details.get("cached_tokens"))

    def _choice(self, choice: Mapping[str, Any]) -> None:
        delta = choice.get("delta") or {"content": choice.get("text")}
        thought = delta.get("reasoning") or delta.get("reasoning_content") or ""
        said = delta.get("content") or ""
        self.reply.reasoning += thought
        self.reply.content += said
        self._see(thought, reasoning=True)
        self._see(said)
        for part in delta.get("tool_calls") or ():
            self._call(part)
        for name, key in (
            ("finish", "finish_reason"),
            ("stop_reason", "stop_reason"),
            ("closed", "reasoning_closed"),
        ):
            if choice.get(key):
                setattr(self.reply, name, str(choice[key]))

    def _call(self, part: Mapping[str, Any]) -> None:
        number = int(part.get("index") or 0)
        if not 0 <= number <= len(self.reply.calls):
            raise ValueError
        if number == len(self.reply.calls):
            self.reply.calls.append(Call())
        call, function = self.reply.calls[number], part.get("function") or {}
        call.id += part.get("id") or ""
        call.name += function.get("name") or ""
        call.arguments += function.get("arguments") or ""
        self._see(function.get("arguments") or "")

    def _see(self, piece: str, *, reasoning: bool = False) -> None:
        if piece and self.reply.spin is None:
            self.reply.spin = self._watch.feed(piece, reasoning=reasoning)


def _count(value: Any) -> int | None:
    if value is not None and (type(value) is not int or value < 0):
        raise ValueError
    return value
