"""A real `vllm serve` for tests: start, wait, ask, stop with nothing left."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import requests

from tests.support import runner_kept
from tests.support.netns import Node
from tests.support.runner import Runner

Process = subprocess.Popen[bytes] | runner_kept.Forked
READY_S = 300
"""A start takes some 35 s on two idle cores."""


class StartFailed(AssertionError):
    """The server ended, or did not get ready; `log` is all that it said."""

    def __init__(self, message: str, log: str) -> None:
        super().__init__(f"{message}\n{log[-6000:]}")
        self.log = log


class Server:
    """A server that is up. Paths are relative to its root, as "/health".

    `node`: where its loopback is, if not here.
    """

    def __init__(self, url: str, log: Path, process: Process, node: Node | None = None) -> None:
        self.url = url
        self._log = log
        self.process = process
        self.node = node

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def get(self, path: str, **options: Any) -> requests.Response:
        with self.node.entered() if self.node else nullcontext():
            return requests.get(self.url + path, timeout=60, **options)

    def post(self, path: str, body: Mapping[str, Any], **options: Any) -> requests.Response:
        with self.node.entered() if self.node else nullcontext():
            return requests.post(self.url + path, json=body, timeout=120, **options)

    def chat(self, message: str, **fields: Any) -> dict[str, Any]:
        """The whole answer to one user message, asked by a client that sets only `fields`."""
        body = {"model": "tiny", "messages": [{"role": "user", "content": message}], **fields}
        answer = self.post("/v1/chat/completions", body)
        assert answer.status_code == 200, answer.text
        result: dict[str, Any] = answer.json()
        return result

    def stream(self, message: str, **fields: Any) -> list[dict[str, Any]]:
        """The same, streamed: the chunks in order; the last line is [DONE]."""
        body = {"model": "tiny", "messages": [{"role": "user", "content": message}], **fields}
        with self.post("/v1/chat/completions", {**body, "stream": True}, stream=True) as answer:
            assert answer.status_code == 200, answer.text
            lines = [line[6:] for line in answer.iter_lines() if line.startswith(b"data: ")]
        assert lines[-1] == b"[DONE]"
        return [json.loads(line) for line in lines[:-1]]

    def metrics(self) -> dict[str, float]:
        """Every sample of /metrics by its name and labels as written there."""
        found = {}
        for line in self.get("/metrics").text.splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                found[name] = float(value)
        return found

    def metric(self, name: str, **labels: str) -> float:
        """The sum of the samples of this name that have these labels; 0 where there is none."""
        total = 0.0
        for sample, value in self.metrics().items():
            if sample.partition("{")[0] == name and all(
                f'{key}="{text}"' in sample for key, text in labels.items()
            ):
                total += value
        return total


def command(runner: Runner, *flags: str, port: int) -> list[str]:
    serve = [str(runner.python.parent / "vllm"), "serve", str(runner.model)]
    serve += ["--served-model-name", "tiny", "--host", "127.0.0.1", "--port", str(port)]
    return [*serve, "--enforce-eager", "--max-model-len", "2048", "--max-num-seqs", "8", *flags]


def environment(runner: Runner, folder: Path, sockets: Path) -> dict[str, str]:
    """All that the server sees of this process's environment is PATH.

    `sockets`: the address of one may have 107 bytes, which pytest's folders take already.
    """
    return {
        "PATH": f"{runner.python.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(runner.overlay or ""),
        "PYTHONUNBUFFERED": "1",
        "HOME": str(folder),
        "TMPDIR": str(sockets),
        "VLLM_CACHE_ROOT": str(runner.home / "cache"),
        # 0.29.0 compiles its sampler for the first answer, into a folder of TMPDIR else: 13 s a server.
        "TORCHINDUCTOR_CACHE_DIR": str(runner.home / "inductor"),
        "VLLM_TARGET_DEVICE": "cpu",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
    }


@contextmanager
def serving(
    runner: Runner,
    folder: Path,
    *flags: str,
    env: Mapping[str, str] | None = None,
    program: bool = False,
) -> Iterator[Server]:
    """A server with these flags after the usual ones; gone, with all its children, at the end.

    `folder` is for its log and its home; it is made. A Python that is kept forks it
    (tests/support/runner_kept.py): not with `program`, nor one with another environment, nor one
    that is installed, which start as everybody starts them. Raises StartFailed.
    """
    port = _free_port()
    words = command(runner, *flags, port=port)
    kept = not (program or env or runner.overlay is None)
    with started(words, runner, folder, env or {}, kept=kept) as (process, log):
        server = Server(f"http://127.0.0.1:{port}", log, process)
        wait(server)
        yield server


@contextmanager
def started(
    command: Sequence[str],
    runner: Runner,
    folder: Path,
    env: Mapping[str, str],
    *,
    kept: bool = False,
    node: Node | None = None,
) -> Iterator[tuple[Process, Path]]:
    """A process and its log; gone, with all its children, at the end, or the test fails.

    `folder` is for its log and its home; it is made. `kept`: forked by a Python that is kept.
    `node`: where it is, if not here.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "server.log"
    with tempfile.TemporaryDirectory(prefix="vllm-", ignore_cleanup_errors=True) as sockets:
        whole = {**environment(runner, folder, Path(sockets)), **env}
        with log.open("wb") as output:
            process: Process = (
                runner_kept.start(command, output, folder, whole, node and node.namespace)
                if kept
                else subprocess.Popen(
                    node.command(*command) if node else command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=folder,
                    env=whole,
                    start_new_session=True,
                )
            )
        try:
            yield process, log
        finally:
            left = stop(process)
    said = log.read_text(encoding="utf-8", errors="replace")
    assert not left, f"the server left processes behind: {left}\n{said[-3000:]}"


def refused(runner: Runner, folder: Path, *flags: str, program: bool = False) -> str:
    """What a server said that did not start with these flags."""
    try:
        with serving(runner, folder, *flags, program=program):
            pass
    except StartFailed as failed:
        return failed.log
    raise AssertionError(f"the server started with {flags}")


def stop(process: Process, *, patience_s: float = 30) -> list[str]:
    """Ends the server as a user does; the processes that had to be killed after that."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    until = time.monotonic() + 10
    while _session(process.pid) and time.monotonic() < until:
        time.sleep(0.1)
    left = _session(process.pid)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return list(left.values())


def _session(leader: int) -> dict[int, str]:
    """The living processes of a session (proc(5), stat: after the name state, ppid, pgrp, session)."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue  # it ended meanwhile
        state, _, _, session = text.rpartition(") ")[2].split()[:4]
        if int(session) == leader and state != "Z":
            found[int(stat.parent.name)] = re.sub(r"^\d+ ", "", text.rpartition(") ")[0]) + ")"
    return found


def wait(server: Server, *others: Process) -> None:
    """Until it is up; `others` are processes that it needs. Raises StartFailed."""
    until = time.monotonic() + READY_S
    while time.monotonic() < until:
        for process in (server.process, *others):
            if process.poll() is not None:
                raise StartFailed(f"a process ended with {process.returncode}", server.log)
        try:
            if server.get("/health").status_code == 200:
                return
        except requests.RequestException:
            time.sleep(0.25)
    raise StartFailed(f"the server was not ready after {READY_S} s", server.log)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
