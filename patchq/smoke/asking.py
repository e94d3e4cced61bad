"""What a probe has in its hands: the server, the run's values, and the record of what was said."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from patchq.smoke.bounds import Bounds
from patchq.smoke.client import Client
from patchq.smoke.metrics import Metrics
from patchq.smoke.model import About, Golden, LeftOut, NotRun, Wrong
from patchq.smoke.nodes import Nodes
from patchq.smoke.questions import Values
from patchq.smoke.stream import Reply

THINKING: Mapping[str, Any] = {"enable_thinking": True, "thinking": True}
NOT_THINKING: Mapping[str, Any] = {"enable_thinking": False, "thinking": False}
"""The switch has either name; a template does not see the one that it does not know."""
SHORT, THOUGHTFUL = 512, 8192
"""Most tokens of an answer without and with a thought; a smaller context has half of it."""
SHOWN = 600
"""Characters of a text that go into the evidence."""
_SOUND = ("stop", "tool_calls")

T = TypeVar("T")
R = TypeVar("R")
Message = Mapping[str, Any]


@dataclass(frozen=True)
class Setting:
    """What all probes of a run share.

    `profile`: the name of the profile that the server is held against; `drafts`: it speculates;
    `goldens`: None where no template is pinned. `nodes`: None where the server was named by its
    address. `before`: /metrics as the run began.
    """

    client: Client
    about: About
    values: Values
    bounds: Bounds = field(default_factory=Bounds)
    profile: str | None = None
    drafts: bool = False
    goldens: tuple[Golden, ...] | None = None
    nodes: Nodes | None = None
    before: Metrics | None = None
    conversation: Mapping[str, Any] | None = None
    repeat: int = 1


@dataclass
class Asking:
    """One probe's. `over`: all others are done; `evidence`: JSON values, as they are found."""

    setting: Setting
    over: threading.Event = field(default_factory=threading.Event)
    evidence: dict[str, Any] = field(default_factory=dict)
    exchanges: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def client(self) -> Client:
        return self.setting.client

    @property
    def values(self) -> Values:
        return self.setting.values

    @property
    def nodes(self) -> Nodes:
        """Raises LeftOut where there are none."""
        if self.setting.nodes is None:
            raise LeftOut("no cluster is named")
        return self.setting.nodes

    def patient(self, seconds: float) -> Asking:
        """The same, which waits so long for a byte."""
        client = self.client.patient(seconds)
        return replace(self, setting=replace(self.setting, client=client))

    def user(self, text: str, **fields: Any) -> Reply:
        """The answer to one message."""
        return self.chat([{"role": "user", "content": text}], **fields)

    def chat(self, messages: Sequence[Message], *, thinking: bool = False, **fields: Any) -> Reply:
        """A whole and sound answer, greedy unless `fields` say otherwise.

        Raises Wrong where it spins, was cut at a limit or stopped for a repetition.
        """
        body = {
            "messages": list(messages),
            "temperature": 0,
            "max_tokens": self.limit(THOUGHTFUL if thinking else SHORT),
            "chat_template_kwargs": dict(THINKING if thinking else NOT_THINKING),
            **fields,
        }
        asked = str(messages[-1].get("content") or "")
        return self._stream("/v1/chat/completions", body, asked)

    def again(self, body: Mapping[str, Any]) -> Reply:
        """A request as it was once sent."""
        asked = str(body["messages"][-1].get("content") or "")
        return self._stream("/v1/chat/completions", body, asked)

    def complete(self, tokens: Sequence[int], **fields: Any) -> Reply:
        """What comes after a prompt of just these tokens."""
        body = {"prompt": list(tokens), "temperature": 0, "max_tokens": self.limit(SHORT), **fields}
        return self._stream("/v1/completions", body, f"{len(tokens)} tokens")

    def limit(self, wanted: int) -> int:
        context = self.setting.about.context
        return min(wanted, context // 2) if context else wanted

    def expect(self, reply: Reply, wanted: str) -> None:
        """Raises Wrong where the answer is another one."""
        if reply.answer != wanted:
            raise Wrong(f"it answers {excerpt(reply.answer)}, not {excerpt(wanted)}")

    def together(self, do: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """At the same time; the first fault is raised when all are done.

        Not a pool of concurrent.futures: the end of the process would wait for it.
        """
        given = list(items)
        done: dict[int, R] = {}
        faults: dict[int, Exception] = {}

        def work(place: int) -> None:
            try:
                done[place] = do(given[place])
            except Exception as fault:
                faults[place] = fault

        threads = [
            threading.Thread(target=work, args=(place,), daemon=True) for place in range(len(given))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if faults:
            raise faults[min(faults)]
        return [done[place] for place in range(len(given))]

    def _stream(self, path: str, body: Mapping[str, Any], asked: str) -> Reply:
        record: dict[str, Any] = {"asked": asked[-SHOWN:]}
        self.exchanges.append(record)
        try:
            reply = self.client.stream(path, {"model": self.setting.about.model, **body})
        except (NotRun, Wrong) as problem:
            record["broke"] = str(problem)
            raise
        record.update(recorded(reply))
        require_sound(reply)
        return reply


def require_sound(reply: Reply) -> None:
    """Raises Wrong for an answer that did not end by itself."""
    if reply.spin is not None:
        raise Wrong(f"it spins: {reply.spin.says}")
    if reply.closed:
        raise Wrong(f"the server's guard ended its thought ({reply.closed})")
    if reply.finish == "length":
        raise Wrong(f"it was cut at the limit, after {reply.completion_tokens or '?'} tokens")
    if reply.finish not in _SOUND:
        raise Wrong(f"it ended with {excerpt(reply.finish)} ({reply.stop_reason or 'no reason'})")


def recorded(reply: Reply) -> dict[str, Any]:
    """A reply as evidence."""
    spin = reply.spin
    return {
        "content": reply.content[:SHOWN],
        "reasoning": reply.reasoning[:SHOWN],
        "calls": [{"name": each.name, "arguments": each.arguments} for each in reply.calls],
        "finish": reply.finish or None,
        "stop_reason": reply.stop_reason or None,
        "reasoning_closed": reply.closed or None,
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "cached_tokens": reply.cached_tokens,
        "first_token_s": None if reply.first is None else round(reply.first, 4),
        "seconds": round(reply.seconds, 4),
        "spin": spin
        and {
            "kind": spin.kind,
            "begins": spin.begins,
            "period": spin.period,
            "copies": spin.copies,
            "what": spin.what,
        },
    }


def excerpt(text: str) -> str:
    """For a sentence: quoted, short."""
    return repr(text if len(text) <= 80 else f"{text[:60]}...{text[-15:]}")
