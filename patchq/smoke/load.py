"""Requests whose times are taken: one, or several at once, over /v1/completions.

A user's way is measured: the clock starts before the connection and stops with the last token.
"""

from __future__ import annotations

import json
import queue
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from patchq.smoke.client import Client
from patchq.smoke.model import NotRun, Wrong

Kind = Literal["prose", "structured"]
Metric = Literal["decode", "ttft", "wall"]
METRICS: tuple[Metric, ...] = ("decode", "ttft", "wall")
"""Tokens a second after the first; seconds to the first token; seconds, prompt in to answer out."""

BURST = 10_000.0
"""Tokens a second that no answer is decoded at: they lay in a buffer while a busy machine read
nothing, and give no rate."""


@dataclass(frozen=True)
class Cell:
    """What is asked: `context` prompt tokens (about), so many at once; warm: asked just before."""

    kind: Kind
    context: int
    concurrency: int
    warm: bool = False

    @property
    def name(self) -> str:
        size = f"{self.context // 1024}k" if self.context % 1024 == 0 else str(self.context)
        return f"{self.kind} {size} x{self.concurrency} {'warm' if self.warm else 'cold'}"


@dataclass(frozen=True)
class Taken:
    """One request. `began`: seconds from the start of the run; `broke`: why there is no figure.

    Token counts are the server's; None where it does not tell them.
    """

    began: float
    decode: float | None = None
    ttft: float | None = None
    wall: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    broke: str | None = None


@dataclass(frozen=True)
class Request:
    """`tokens` are wanted, no more and no fewer; `extra` goes into the request's body."""

    model: str
    prompt: str
    tokens: int
    extra: Mapping[str, Any]

    @property
    def body(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "prompt": self.prompt,
            "max_tokens": self.tokens,
            "temperature": 0,
            "ignore_eos": True,
            **self.extra,
        }


Clock = Callable[[], float]


def ask(client: Client, request: Request, clock: Clock = time.monotonic) -> Taken:
    """The times of one answer; `began` is the clock's. No fault of the server is raised."""
    began = clock()
    try:
        return _timed(began, client.events("/v1/completions", request.body), request.tokens, clock)
    except (NotRun, Wrong) as fault:
        return Taken(began, broke=str(fault))


def _timed(began: float, events: Iterator[str], wanted: int, clock: Clock) -> Taken:
    first = last = None
    usage: Mapping[str, Any] = {}
    prompt = cached = tokens = finish = None
    for data in events:
        try:
            event = json.loads(data)
            if event.get("error"):
                raise NotRun("the server broke off: " + str(event["error"])[:200])
            if choices := event.get("choices"):
                last = clock()
                first = last if first is None else first
                finish = choices[0].get("finish_reason") or finish
            usage = event.get("usage") or usage
            details = usage.get("prompt_tokens_details") or {}
            prompt, cached = usage.get("prompt_tokens"), details.get("cached_tokens")
            tokens = usage.get("completion_tokens")
        except (ValueError, TypeError, AttributeError, LookupError):
            raise NotRun(f"the stream has what is no answer: {data[:80]!r}") from None
    if first is None or last is None:
        raise NotRun("the answer has no token")
    prompt, cached = (each if type(each) is int else None for each in (prompt, cached))
    if type(tokens) is not int:
        raise NotRun("the answer does not tell its token counts (stream_options, include_usage)")
    if tokens != wanted:
        raise NotRun(f"the answer ended after {tokens} of {wanted} tokens ({finish})")
    decode = (tokens - 1) / (last - first) if tokens > 1 and last > first else None
    if decode is not None and decode > BURST:
        decode = None
    return Taken(began, decode, first - began, last - began, prompt, tokens, cached)


def together(
    client: Client, requests: Sequence[Request], clock: Clock = time.monotonic
) -> list[Taken]:
    """All at the same time, each in a thread that ends with the process: Ctrl-C waits for none."""
    if len(requests) == 1:
        return [ask(client, requests[0], clock)]
    done: queue.Queue[tuple[int, Taken | Exception]] = queue.Queue()

    def work(number: int) -> None:
        try:
            done.put((number, ask(client, requests[number], clock)))
        except Exception as bug:
            done.put((number, bug))

    for number in range(len(requests)):
        threading.Thread(target=work, args=(number,), daemon=True).start()
    found: dict[int, Taken] = {}
    while len(found) < len(requests):
        number, taken = done.get()
        if isinstance(taken, Exception):
            raise taken
        found[number] = taken
    return [found[number] for number in range(len(requests))]


def value(taken: Sequence[Taken], metric: Metric) -> float | None:
    """The median over requests that were asked at once; None where one of them broke."""
    values = [getattr(each, metric) for each in taken]
    return None if not values or None in values else float(statistics.median(values))
