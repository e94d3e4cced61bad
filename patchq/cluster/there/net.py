"""Ask the server on this node: whether it is healthy, and whether it gets on."""

from __future__ import annotations

import json
import re
import socket
from typing import Any

MOST = 4 << 20
SUMS = {
    "running_requests": "vllm:num_requests_running",
    "waiting_requests": "vllm:num_requests_waiting",
    "prompt_tokens": "vllm:prompt_tokens_total",
    "generation_tokens": "vllm:generation_tokens_total",
}
"""What `/progress` of the series says, by the names that every vLLM has at `/metrics`."""


def get(host: str, port: int, path: str, timeout: float) -> tuple[int, str] | None:
    """Status and body; None where nobody answers within `timeout` seconds, or not in HTTP."""
    head = f"GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode()
    said = b""
    try:
        with socket.create_connection((host, port), timeout) as line:
            line.sendall(head)
            while len(said) < MOST:
                part = line.recv(65536)
                if not part:
                    break
                said += part
    except OSError:
        return None
    first, _, body = said.decode("utf-8", "replace").partition("\r\n\r\n")
    found = re.match(r"HTTP/1\.[01] (\d{3})", first)
    return (int(found.group(1)), body) if found else None


def health(host: str, port: int, timeout: float = 3.0) -> dict[str, Any]:
    """The status that `/health` answers with (None: nothing), and the progress where it is 200."""
    answer = get(host, port, "/health", timeout)
    if answer is None or answer[0] != 200:
        return {"health": answer[0] if answer else None, "progress": None}
    return {"health": 200, "progress": progress(host, port, timeout)}


def progress(host: str, port: int, timeout: float) -> dict[str, Any] | None:
    """What `/progress` says, else the counters of `/metrics`; None where neither is there."""
    answer = get(host, port, "/progress", timeout)
    if answer is not None and answer[0] in (200, 503):
        try:
            told = json.loads(answer[1])
            if isinstance(told, dict) and "status" in told:
                return told
        except ValueError:
            pass
    answer = get(host, port, "/metrics", timeout)
    return counted(answer[1]) if answer is not None and answer[0] == 200 else None


def counted(metrics: str) -> dict[str, Any] | None:
    """The sums over all samples of each counter that is there."""
    found = {}
    for key, name in SUMS.items():
        samples = re.findall(rf"(?m)^{re.escape(name)}(?:\{{[^\n]*\}})? (\S+)$", metrics)
        try:
            found[key] = int(sum(map(float, samples)))
        except (ValueError, OverflowError):
            continue
        if not samples:
            del found[key]
    return found or None
