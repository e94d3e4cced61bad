"""A server over real HTTP that continues a prompt, one token a chunk, with faults on demand.

It knows what it was asked: a prompt that it has seen comes from its cache.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from werkzeug.wrappers import Request, Response

CHARACTERS = 4
"""A token has so many."""
VERSION = {
    "version": "0.29.0",
    "patchq": {"tree": "1" * 40},
    "chat_template": {"sha256": "2" * 64},
}


@dataclass
class Paced:
    """`faults`: silent, cut, 500, no metrics, no usage, short, garbage, busy.
    `after`: requests that are answered well before they begin."""

    faults: frozenset[str] = frozenset()
    context: int | None = 4096
    after: int = 0
    seen: set[str] = field(default_factory=set)
    asked: list[dict[str, Any]] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    meeting: threading.Barrier | None = None
    freed: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def __call__(self, environ: Any, start: Any) -> Any:
        return self.answer(Request(environ))(environ, start)

    def has(self, fault: str) -> bool:
        return fault in self.faults and len(self.asked) > self.after

    def answer(self, request: Request) -> Response:
        match request.path:
            case "/v1/models":
                return _json({"data": [{"id": "tiny", "max_model_len": self.context}]})
            case "/version":
                return _json(VERSION)
            case "/metrics" if "no metrics" not in self.faults:
                return Response(self.metrics(), mimetype="text/plain")
            case "/v1/completions":
                return self.complete(request.get_json())
        return Response(status=404)

    def metrics(self) -> str:
        count = len(self.asked)
        return (
            f"vllm:num_requests_running {2.0 if 'busy' in self.faults else 0.0}\n"
            f"vllm:spec_decode_num_drafts_total {10 * count}\n"
            f"vllm:spec_decode_num_draft_tokens_total {70 * count}\n"
            f"vllm:spec_decode_num_accepted_tokens_total {28 * count}\n"
        )

    def complete(self, body: dict[str, Any]) -> Response:
        with self.lock:
            self.asked.append(body)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            cached = body["prompt"] in self.seen
            self.seen.add(body["prompt"])
        if self.has("silent"):
            self.freed.wait()
        if self.has("500"):
            return _json({"error": {"message": "CUDA error"}}, 500)
        if self.meeting is not None and len(self.asked) > 1:
            self.meeting.wait(10)
        return Response(self.stream(body, cached), mimetype="text/event-stream")

    def stream(self, body: dict[str, Any], cached: bool) -> Iterator[bytes]:
        tokens = body["max_tokens"] - (3 if self.has("short") else 0)
        for number in range(tokens):
            finish = "length" if number == tokens - 1 else None
            yield _event({"choices": [{"text": f" w{number}", "finish_reason": finish}]})
            if number == 1 and self.has("cut"):
                return
            if number == 1 and self.has("garbage"):
                yield b"data: {'\n\n"
        prompt = len(body["prompt"]) // CHARACTERS
        with self.lock:
            self.at_once -= 1
        if not self.has("no usage"):
            yield _event(
                {
                    "choices": [],
                    "usage": {
                        "prompt_tokens": prompt,
                        "completion_tokens": tokens,
                        "prompt_tokens_details": {"cached_tokens": prompt if cached else 0},
                    },
                }
            )
        yield b"data: [DONE]\n\n"


def _event(value: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def _json(value: dict[str, Any], status: int = 200) -> Response:
    return Response(json.dumps(value), status=status, mimetype="application/json")
