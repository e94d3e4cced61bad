"""A strict server over real HTTP that answers the probes as vLLM does, with faults on demand.

It refuses (400) what vLLM would: unknown fields, another model, tool messages without their call.
"""

from __future__ import annotations

import base64
import json
import re
import threading
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

from patchq.smoke import questions as q
from tests.smoke.brain import Thought, think
from tests.smoke.faults import BLOCK, Given, spoiled

MODEL = "tiny"
DRAFTED = 3
ACCEPTED = ((1, 2, 3, 4), (1, 2), (1,))
"""Of five drafts, which are accepted at each position."""
_CHAT = frozenset(
    {
        *("model", "messages", "temperature", "max_tokens", "chat_template_kwargs", "stream"),
        *("stream_options", "stop", "tools", "tool_choice", "response_format"),
    }
)
_COMPLETION = frozenset(
    {"model", "prompt", "temperature", "max_tokens", "stream", "stream_options"}
)


class Refused(Exception):
    """400, with its message."""


@dataclass
class Fake:
    """`faults`: names that `tests/smoke/test_probes.py` gives; `values`: those of the run."""

    faults: frozenset[str] = frozenset()
    context: int | None = 4096
    values: q.Values = field(default_factory=lambda: q.Values(7))
    counters: Counter[str] = field(default_factory=Counter)
    at: Counter[int] = field(default_factory=Counter)
    finished: Counter[str] = field(default_factory=Counter)
    running: int = 0
    blocks: set[tuple[int, ...]] = field(default_factory=set)
    words: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    freed: threading.Event = field(default_factory=threading.Event)
    taken: threading.Event = field(default_factory=threading.Event)
    key: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""

    # --- What it serves ---------------------------------------------------------------------

    def __call__(self, environ: Any, start: Any) -> Any:
        request = Request(environ)
        try:
            response = self.answer(request)
        except Refused as refusal:
            response = _json({"error": {"message": str(refusal)}}, 400)
        return response(environ, start)

    def answer(self, request: Request) -> Response:
        if "silent" in self.faults:
            self.freed.wait()
        if "elsewhere" in self.faults:
            return Response(status=307, headers={"Location": "http://127.0.0.1:9/"})
        if self.key and request.headers.get("Authorization") != f"Bearer {self.key}":
            return _json({"error": "Unauthorized"}, 401)
        match request.path:
            case "/health":
                return Response(status=500 if "ill" in self.faults else 200)
            case "/v1/models":
                return _json({"data": [{"id": MODEL, "max_model_len": self.context}]})
            case "/version":
                return _json({"version": "0.29.0", "patchq": {"tree": "1" * 40}})
            case "/metrics" if "no metrics" not in self.faults:
                return Response(self.metrics(), mimetype="text/plain")
            case "/tokenize" if "no tokens" not in self.faults:
                body = request.get_json()
                return _json({"tokens": self.tokens(self.prompt(body))})
            case "/detokenize":
                return _json({"prompt": self.text(request.get_json()["tokens"])})
            case "/v1/chat/completions":
                return self.stream(self.checked(request.get_json(), _CHAT))
            case "/v1/completions":
                return self.stream(self.checked(request.get_json(), _COMPLETION))
        return Response(status=404)

    def checked(self, body: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
        if unknown := set(body) - known:
            raise Refused(f"unknown fields {sorted(unknown)}")
        if body["model"] != MODEL:
            raise Refused(f"no model {body['model']}")
        if "no tools" in self.faults and body.get("tools"):
            raise Refused('"auto" tool choice requires --enable-auto-tool-choice')
        calls: set[str] = set()
        for message in body.get("messages", ()):
            for call in message.get("tool_calls", ()):
                json.loads(call["function"]["arguments"])
                calls.add(call["id"])
            if message["role"] == "tool" and message["tool_call_id"] not in calls:
                raise Refused("a tool message without its call")
        assert body["stream"] and body["stream_options"] == {"include_usage": True}
        if any(isinstance(each["content"], list) for each in body.get("messages", ())):
            self.sees(body)
        self.asked.append(body)
        return body

    def sees(self, body: dict[str, Any]) -> None:
        """Puts the colour of the picture in the place of it, where pictures are taken."""
        if "sees" not in self.faults:
            raise Refused("At most 0 image(s) may be provided in one prompt.")
        (picture, text) = body["messages"][-1]["content"]
        data = base64.b64decode(picture["image_url"]["url"].partition("base64,")[2])
        colour = zlib.decompress(data[data.index(b"IDAT") + 4 :])[1:4]
        body["messages"][-1]["content"] = f"{text['text']} It is {colour.hex()}."

    def metrics(self) -> str:
        with self.lock:
            lines = [
                "# HELP vllm:num_requests_running Number of requests.",
                f'vllm:num_requests_running{{engine="0",model_name="{MODEL}"}} {self.running}',
                f'vllm:num_requests_waiting{{engine="0",model_name="{MODEL}"}} 0.0',
                f'vllm:cache_config_info{{block_size="{BLOCK}",engine="0"}} 1.0',
            ]
            names = ("prompt_tokens", "generation_tokens", "prefix_cache_hits", "num_preemptions")
            lines += [
                f'vllm:request_success_total{{finished_reason="{reason}"}} {self.finished[reason]}'
                for reason in ("stop", "length", "abort", "error")
            ]
            drafts = ("num_drafts", "num_draft_tokens", "num_accepted_tokens")
            if "counts no drafts" not in self.faults:
                names += tuple(f"spec_decode_{each}" for each in drafts)
                lines += [
                    f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{position="{place}"}} {self.at[place]}'
                    for place in range(DRAFTED)
                ]
            lines += [f'vllm:{each}_total{{engine="0"}} {self.counters[each]}' for each in names]
        return "\n".join(lines) + "\n"

    # --- Prompt and tokens ------------------------------------------------------------------

    def prompt(self, body: Mapping[str, Any]) -> str:
        text = "".join(f"<|{each['role']}|>\n{each['content']}" for each in body["messages"])
        switch = body.get("chat_template_kwargs", {}).get("enable_thinking", True)
        opened = switch or "template" in self.faults
        return f"{text}<|assistant|>\n{'<think>' if opened else '<think></think>'}"

    def tokens(self, text: str) -> list[int]:
        with self.lock:
            found = []
            for word in re.findall(r"\s*[^\s<>]+|\s*[<>]|\s+", text):
                if word not in self.words:
                    self.words.append(word)
                found.append(self.words.index(word))
        return found

    def text(self, tokens: Sequence[int]) -> str:
        return "".join(self.words[token] for token in tokens)

    def cached(self, tokens: Sequence[int], body: Mapping[str, Any]) -> int:
        """Tokens of full blocks that were there before; the last token is always computed."""
        full = (len(tokens) - 1) // BLOCK
        together = any(code in self.text(tokens) for code in self.values.codes("prefixes", 3))
        with self.lock:
            known = [tuple(tokens[: BLOCK * (each + 1)]) in self.blocks for each in range(full)]
            alone = not ("cached alone" in self.faults and together)
            if "cache off" not in self.faults and alone:
                self.blocks |= {tuple(tokens[: BLOCK * (each + 1)]) for each in range(full)}
        return BLOCK * (known.index(False) if False in known else full)

    # --- Answers ----------------------------------------------------------------------------

    def stream(self, body: dict[str, Any]) -> Response:
        chat = "messages" in body
        prompt = self.tokens(self.prompt(body)) if chat else body["prompt"]
        if self.context and len(prompt) + body["max_tokens"] > self.context:
            raise Refused(f"{len(prompt)} + {body['max_tokens']} tokens are too many")
        with self.lock:
            self.running += 1
        return Response(self._events(body, prompt, chat=chat), mimetype="text/event-stream")

    def _events(self, body: dict[str, Any], prompt: list[int], *, chat: bool) -> Iterator[bytes]:
        ended = "abort"
        try:
            cached = self.cached(prompt, body)
            self.taken.set()
            if "wedged" in self.faults:
                self.freed.wait()
            messages = body.get("messages") or _said(self.text(prompt))
            switch = body.get("chat_template_kwargs", {}).get("enable_thinking", chat)
            thought = spoiled(
                think(messages, thinking=switch),
                self.faults,
                self.values,
                Given(body, str(messages[-1]["content"]), len(prompt), cached),
            )
            written = 0
            finish = "stop"
            for name, piece in _pieces(thought, body):
                if written >= body["max_tokens"]:
                    finish = "length"
                    break
                written += 1
                self.count(written)
                yield _event(_delta(name, piece, chat=chat))
                if "cut" in self.faults and "The town is" in str(messages):
                    raise ConnectionAbortedError
                if "not UTF-8" in self.faults and "The cat" in str(messages):
                    yield b'data: {"choices": [{"delta": {"content": "\xff"}}]}\n\n'
            if thought.name and finish == "stop":
                finish = "tool_calls"
            yield _event(
                {"choices": [{"index": 0, "delta": {}, "text": "", "finish_reason": finish}]}
            )
            usage: dict[str, Any] = {"prompt_tokens": len(prompt), "completion_tokens": written}
            if "tells no cache" not in self.faults:
                usage["prompt_tokens_details"] = {"cached_tokens": cached} if cached else None
            yield _event({"choices": [], "usage": usage})
            with self.lock:
                self.counters.update(prompt_tokens=len(prompt), prefix_cache_hits=cached)
                self.counters["num_preemptions"] += "preempts" in self.faults
            ended = "error" if "errors" in self.faults else "stop"
            yield b"data: [DONE]\n\n"
        finally:
            with self.lock:
                self.finished[ended] += 1
                self.running -= 1

    def count(self, number: int) -> None:
        with self.lock:
            self.counters["generation_tokens"] += 1
            if number % 2 or "drafting off" in self.faults:
                return
            self.counters.update(spec_decode_num_drafts=1, spec_decode_num_draft_tokens=DRAFTED)
            draft = self.counters["spec_decode_num_drafts"] % 5
            for place, taken in enumerate(ACCEPTED):
                if draft in taken or "pinned" in self.faults:
                    self.at[place] += 1
                    self.counters["spec_decode_num_accepted_tokens"] += 1


def _said(prompt: str) -> list[dict[str, str]]:
    parts = re.findall(r"<\|(\w+)\|>\n(.*?)(?=<\|)", prompt, re.DOTALL)
    return [{"role": role, "content": text} for role, text in parts]


def _pieces(thought: Thought, body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is streamed: the field of the delta, and a piece of its text."""
    content = thought.content
    for stop in body.get("stop", ()):
        content = content.partition(stop)[0]
    for name, text in (("reasoning", thought.reasoning), ("content", content)):
        for piece in re.findall(r"\s*\S{1,6}", text):
            yield name, piece
    if thought.name:
        yield "name", thought.name
        for piece in re.findall(r".{1,5}", json.dumps(thought.arguments)):
            yield "arguments", piece


def _delta(name: str, piece: str, *, chat: bool) -> dict[str, Any]:
    if not chat:
        return {"choices": [{"index": 0, "text": piece, "finish_reason": None}]}
    if name == "name":
        call = {"index": 0, "id": "call_x", "type": "function", "function": {"name": piece}}
        delta: dict[str, Any] = {"tool_calls": [call]}
    elif name == "arguments":
        delta = {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}
    else:
        delta = {name: piece}
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def _event(value: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(value).encode("utf-8") + b"\n\n"


def _json(value: Any, status: int = 200) -> Response:
    return Response(json.dumps(value), status=status, mimetype="application/json")


class _Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:
        return None

    def connection_dropped(self, error: BaseException, environ: Any = None) -> None:
        return None


@contextmanager
def serving(fake: Fake) -> Iterator[Fake]:
    """On a free port of 127.0.0.1; whoever still waits is let go at the end."""
    server = make_server("127.0.0.1", 0, fake, threaded=True, request_handler=_Handler)
    server.daemon_threads = True
    server.block_on_close = False
    fake.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield fake
    finally:
        fake.freed.set()
        server.shutdown()
        thread.join()
        server.server_close()
