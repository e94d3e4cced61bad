"""What `patchq bench` costs beside a bare load generator: ``python -m tests.bench.harness``.

    python -m tests.bench.harness [--visits N]

Prints Markdown. A server of its own process sends every answer at fixed times: the first token, and then one
each PACE. It is asked the same prompts, as many at once, by patchq (a visit of a bench as it is: it makes the
prompts, asks them cold and warm, keeps the figures) and by the peer, http.client in threads that looks at the
clock when a line comes and does nothing else, in turns A B B A. What a visit takes longer than the peer's is
the harness's. The figures are held against what the server sent.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from patchq.smoke.bench import Plan, Run, order
from patchq.smoke.books import prose
from patchq.smoke.client import Client
from patchq.smoke.load import Cell

CHARACTERS = 4
"""A token has so many."""


@dataclass(frozen=True)
class Case:
    """Prompt tokens, requests at once, seconds to the first token and to each further one."""

    context: int
    concurrency: int
    first: float
    pace: float
    tokens: int = 64

    @property
    def wall(self) -> float:
        return self.first + (self.tokens - 1) * self.pace


CASES = (
    Case(1024, 1, 0.1, 0.03, 32),
    Case(1024, 1, 0.05, 0.005),
    Case(1024, 4, 0.1, 0.02),
    Case(32768, 1, 0.5, 0.02),
    Case(32768, 4, 0.5, 0.02),
)


# --- The server ---------------------------------------------------------------------------------


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, case: Case) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    path = head.split()[1]
    size = (
        int(head.partition(b"content-length:")[2].split()[0]) if b"content-length:" in head else 0
    )
    asked = json.loads(await reader.readexactly(size)) if size else {}
    due = asyncio.get_running_loop().time() + case.first
    if path == b"/v1/completions":
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n")
        writer.write(b"Content-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for number in range(asked["max_tokens"]):
            await asyncio.sleep(due + number * case.pace - asyncio.get_running_loop().time())
            chunk(writer, json.dumps({"choices": [{"text": f" w{number}"}]}))
            await writer.drain()
        prompt = len(asked["prompt"]) // CHARACTERS
        usage = {"prompt_tokens": prompt, "completion_tokens": asked["max_tokens"]}
        chunk(writer, json.dumps({"choices": [], "usage": usage}))
        chunk(writer, "[DONE]")
        writer.write(b"0\r\n\r\n")
    else:
        body = json.dumps({"data": [{"id": "tiny"}]}).encode() if path == b"/v1/models" else b""
        status = b"200 OK" if body else b"404 Not Found"
        told = f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
        writer.write(b"HTTP/1.1 " + status + b"\r\n" + told + body)
    await writer.drain()
    writer.close()


def chunk(writer: asyncio.StreamWriter, data: str) -> None:
    line = f"data: {data}\n\n".encode()
    writer.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")


async def serve(case: Case) -> None:
    server = await asyncio.start_server(
        lambda reader, writer: answer(reader, writer, case), "127.0.0.1", 0, limit=1 << 24
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def served(number: int) -> Iterator[int]:
    """The port of a server of that case."""
    command = [sys.executable, "-m", "tests.bench.harness", "--serve", str(number)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


# --- The peer -----------------------------------------------------------------------------------


def bare(port: int, body: bytes, found: list[tuple[float, float]]) -> None:
    """Seconds to the first and to the last token of one answer."""
    began = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
    lines = [time.monotonic() for line in connection.getresponse() if line.startswith(b"data:")]
    connection.close()
    found.append((lines[0] - began, lines[-3] - began))  # the last two are usage and [DONE]


def bodies(case: Case, mark: str) -> list[bytes]:
    return [
        json.dumps(
            {
                "model": "tiny",
                "prompt": prose(f"{mark} {number}", number, case.context * CHARACTERS),
                "max_tokens": case.tokens,
                "stream": True,
                "stream_options": {"include_usage": True},
            }
        ).encode()
        for number in range(case.concurrency)
    ]


def visit(port: int, asked: list[bytes]) -> list[tuple[float, float]]:
    """All at once, and once more."""
    found: list[tuple[float, float]] = []
    for _ in range(2):
        threads = [threading.Thread(target=bare, args=(port, body, found)) for body in asked]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return found


# --- Both ---------------------------------------------------------------------------------------


def measured(number: int, visits: int) -> list[str]:
    case = CASES[number]
    cell = Cell("prose", case.context, case.concurrency)
    spent: tuple[list[float], list[float]] = ([], [])
    peer: list[tuple[float, float]] = []
    with served(number) as port:
        client = Client(f"http://127.0.0.1:{port}")
        plan = Plan((case.context,), (case.concurrency,), case.tokens, visits)
        run = Run(plan, ["patchq"])
        run.serves(0, client, client.about())
        visit(port, bodies(case, "warm-up"))
        for turn in range(visits):
            for side, place in order(2, turn):
                asked = bodies(case, f"{turn} {place}")
                began = time.monotonic()
                if side:
                    run.visit(turn, cell, 0, place)
                else:
                    peer += visit(port, asked)
                spent[side].append(time.monotonic() - began)
    ours = [each for visit in run.visits for each in visit.taken]
    assert not any(each.broke for each in ours)
    longer = statistics.median(spent[1]) / statistics.median(spent[0]) - 1
    first = statistics.median(each.ttft or 0 for each in ours) - case.first
    wall = statistics.median(each.wall or 0 for each in ours) / case.wall - 1
    decode = statistics.median(each.decode or 0 for each in ours) * case.pace - 1
    theirs = statistics.median(each[0] for each in peer) - case.first
    return [
        str(case.context),
        str(case.concurrency),
        f"{1 / case.pace:.0f}",
        f"{statistics.median(spent[0]):.3f}",
        f"{statistics.median(spent[1]):.3f}",
        f"{longer:+.2%}",
        f"{wall:+.2%}",
        f"{decode:+.2%}",
        f"{first * 1000:+.1f} ({theirs * 1000:+.1f})",
    ]


def main() -> int:
    from tests.bench.table import rows

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--visits", type=int, default=5)
    parser.add_argument("--serve", type=int)
    options = parser.parse_args()
    if options.serve is not None:
        asyncio.run(serve(CASES[options.serve]))
    heads = ["prompt", "at once", "tokens/s each", "bare, s", "patchq, s", "longer"]
    heads += ["wall", "decode", "first token, ms (bare)"]
    print(rows(heads, [measured(number, options.visits) for number in range(len(CASES))]))
    print(f"\nload at the end: {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
