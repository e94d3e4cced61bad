"""Stands for `vllm serve` where processes are tested: its command line, its ranks, its ports, its
shared memory, its children. Installed from a wheel (tests/support/fleet.py), so it imports nothing
of ours.

It answers completions, a token after another, faster with more draft tokens; where PACE (milliseconds
a token) is in its environment it is idle otherwise. REFUSES: a number of draft tokens that it ends at.

FAULT in its environment says what goes wrong, at the rank FAULT_RANK (0): exit (after its words
FAULT_SAYS), silent (never serves), stubborn (deaf to SIGTERM).
"""

from __future__ import annotations

import argparse
import contextlib
import http.server
import json
import mmap
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib

METRICS = """# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0"} 1.0
vllm:num_requests_waiting{engine="0"} 0.0
vllm:prompt_tokens_total{engine="0"} 12.0
vllm:generation_tokens_total{engine="0"} 30.0
"""
MODELS = '{"data": [{"id": "tiny", "max_model_len": 2048}]}'


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("port", "node-rank", "nnodes", "master-port"):
        parser.add_argument(f"--{name}", type=int, default=0)
    parser.add_argument("--master-addr")
    parser.add_argument("--speculative-config", type=json.loads, default={})
    parser.add_argument("--headless", action="store_true")
    given, _ = parser.parse_known_args()
    given.drafts = given.speculative_config.get("num_speculative_tokens", 0)
    if str(given.drafts) == os.environ.get("REFUSES"):
        sys.exit("too many draft tokens")
    fault = os.environ.get("FAULT", "")
    if str(given.node_rank) != os.environ.get("FAULT_RANK", "0"):
        fault = ""
    print(f"rank {given.node_rank} starts", *sys.argv[1:], flush=True)
    share()
    # One child of the session, and one that leaves it.
    for apart in (False, True):
        subprocess.Popen(["sleep", "600"], start_new_session=apart)
    signal.signal(signal.SIGTERM, signal.SIG_IGN if fault == "stubborn" else leave)
    if fault == "exit":
        time.sleep(0.3)
        print(os.environ.get("FAULT_SAYS", "no reason"), flush=True)
        os._exit(3)
    if given.headless:
        follow(given)
    lead(given, fault)


def mark(home: str) -> str:
    """What its shared memory's names begin with: other tests run at the same time."""
    return f"patchq-standin-{zlib.crc32(home.encode()):08x}"


def share() -> None:
    path = f"/dev/shm/{mark(os.path.expanduser('~'))}-{os.getpid()}"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    os.ftruncate(descriptor, 4096)
    globals()["kept"] = mmap.mmap(descriptor, 4096)
    print(f"shares {path}", flush=True)


def leave(*_: object) -> None:
    print("leaves", flush=True)
    os._exit(0)


def follow(given: argparse.Namespace) -> None:
    while True:
        try:
            line = socket.create_connection((given.master_addr, given.master_port), 5)
            break
        except OSError:
            time.sleep(0.05)
    line.settimeout(None)
    print("joined", flush=True)
    with contextlib.suppress(OSError):
        line.recv(1)
    print("Connection closed by peer", flush=True)
    os._exit(1)


def lead(given: argparse.Namespace, fault: str) -> None:
    lines = []
    if given.nnodes > 1:
        with socket.create_server((given.master_addr, given.master_port)) as server:
            while len(lines) < given.nnodes - 1:
                lines.append(server.accept()[0])

    answered: list[str] = []
    pace = float(os.environ.get("PACE", "0")) / 1000
    metrics = METRICS.replace('running{engine="0"} 1.0', "running 0.0") if pace else METRICS

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()
            for number in range(asked["max_tokens"]):
                time.sleep(pace / (1 + given.drafts))
                self.say({"choices": [{"text": f" {number}"}]})
            usage = {"prompt_tokens": len(asked["prompt"]) // 4}
            self.say({"usage": {**usage, "completion_tokens": asked["max_tokens"]}})
            self.wfile.write(b"data: [DONE]\n\n")
            answered.append(self.path)
            print(f"answers {len(answered)}", flush=True)

        def say(self, event: object) -> None:
            self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")

        def do_GET(self) -> None:
            found = {"/health": "", "/metrics": metrics, "/v1/models": MODELS}.get(self.path)
            self.send_response(404 if found is None else 200)
            self.end_headers()
            self.wfile.write((found or "").encode())

        def log_message(self, *_: object) -> None:
            return None

    if fault == "silent":
        signal.pause()
    web = http.server.ThreadingHTTPServer(("", given.port), Handler)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    print("serves", flush=True)
    while fault == "stubborn":
        signal.pause()
    for line in lines:
        with contextlib.suppress(OSError):
            line.recv(1)
        print("Connection closed by peer", flush=True)
        os._exit(1)
    signal.pause()


if __name__ == "__main__":
    main()
