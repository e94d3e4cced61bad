"""`vllm serve` in a process of its own, without waiting for its interpreter to import vLLM.

A Python that has imported what vLLM's command line imports is kept beside the tests, and forks for
each server: the child has the words, environment, folder and streams that it would have as a
program, runs the very script of `vllm` as `__main__`, and ends as an interpreter ends. The engine
and its workers it starts itself, as always, by new interpreters. What is not in it is what is read
of the environment at import: that is the kept one's, which differs in `_OWN` alone.

This file is also the program that is kept.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

_NUMBER = 8
_PATIENCE_S = 240
"""With its import of vLLM, on a machine that does other things."""
_OWN = {"HOME", "TMPDIR", "VLLM_HOST_IP", "GLOO_SOCKET_IFNAME"}
"""Read when it is needed, not at import."""
_NEW_NETWORK = 0x40000000
"""CLONE_NEWNET of <linux/sched.h>."""


class Forked:
    """Of `subprocess.Popen`, what a test of a server needs."""

    def __init__(self, args: list[str], pid: int, ended: socket.socket) -> None:
        self.args = args
        self.pid = pid
        self.returncode: int | None = None
        self._ended = ended

    def wait(self, timeout: float | None = None) -> int:
        """Raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._ended], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = _number(self._ended)
            self._ended.close()
        return self.returncode

    def poll(self) -> int | None:
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it ended meanwhile
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def start(
    command: Sequence[str],
    output: BinaryIO,
    folder: Path,
    env: Mapping[str, str],
    network: str | None = None,
) -> Forked:
    """`command` (`vllm` of an environment, and its words) in a session of its own.

    As `subprocess.Popen` with an empty stdin and both streams to `output`. `network`: the name of
    the network namespace that it is in, if not here.
    """
    program, *words = command
    fixed = frozenset((name, value) for name, value in env.items() if name not in _OWN)
    call = {"args": words, "env": dict(env), "cwd": str(folder), "network": network}
    return Forked(list(command), *_kept(program, fixed).start(call, output))


def _number(line: socket.socket) -> int:
    told = line.recv(_NUMBER, socket.MSG_WAITALL)
    assert len(told) == _NUMBER, "the Python that is kept for vLLM has ended"
    return int.from_bytes(told, "big", signed=True)


@functools.cache
def _kept(program: str, env: frozenset[tuple[str, str]]) -> _Kept:
    return _Kept(program, dict(env))


class _Kept:
    """It ends with its last client; what it forked does not."""

    def __init__(self, program: str, env: Mapping[str, str]) -> None:
        self._own = tempfile.TemporaryDirectory(prefix="vllm-kept-")
        self._line, its = socket.socketpair()
        self._log = Path(self._own.name) / "log"
        with its, self._log.open("wb") as output:
            self._process = subprocess.Popen(
                [Path(program).parent / "python", __file__, str(its.fileno()), program, self._log],
                env={**env, "HOME": self._own.name, "TMPDIR": self._own.name},
                cwd=self._own.name,
                pass_fds=[its.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        atexit.register(self._end)

    def _end(self) -> None:
        self._line.close()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._own.cleanup()

    def start(self, call: Mapping[str, Any], output: BinaryIO) -> tuple[int, socket.socket]:
        """The process id, and where it comes how it ended."""
        told = json.dumps(call).encode()
        ended, its = socket.socketpair()
        ended.settimeout(_PATIENCE_S)
        with its:
            head = len(told).to_bytes(_NUMBER, "big")
            socket.send_fds(self._line, [head], [output.fileno(), its.fileno()])
        self._line.sendall(told)
        try:
            pid = _number(ended)
            ended.settimeout(None)
            return pid, ended
        except (AssertionError, TimeoutError) as error:
            error.add_note(self._log.read_text(encoding="utf-8", errors="replace")[-3000:])
            raise


def keep() -> None:
    """Fork for each call, and once more in each child, so that somebody waits for the server."""
    line, script = socket.socket(fileno=int(sys.argv[1])), sys.argv[2]
    sys.path[0] = str(Path(script).parent)
    commands = importlib.import_module("vllm.entrypoints.cli")
    for found in pkgutil.iter_modules(commands.__path__, "vllm.entrypoints.cli."):
        importlib.import_module(found.name)
    importlib.import_module("vllm.entrypoints.cli.benchmark.main")
    gc.freeze()  # so that no fork copies what it only looks through
    said = Path(sys.argv[3]).read_bytes()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while call := _next(line):
        told, (output, ended) = call
        if os.fork() == 0:
            line.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            child = os.fork()
            if child == 0:
                os.close(ended)
                _become(script, told, output, said)
            os.close(output)
            _say_how_it_ends(child, ended)
        os.close(output)
        os.close(ended)


def _next(line: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    head, given, _, _ = socket.recv_fds(line, _NUMBER, 2)
    if not head:
        return None
    head += line.recv(_NUMBER - len(head), socket.MSG_WAITALL) if len(head) < _NUMBER else b""
    return json.loads(line.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)), given


def _say_how_it_ends(child: int, ended: int) -> NoReturn:
    try:
        os.write(ended, child.to_bytes(_NUMBER, "big", signed=True))
        _, status = os.waitpid(child, 0)
        os.write(ended, os.waitstatus_to_exitcode(status).to_bytes(_NUMBER, "big", signed=True))
    finally:
        os._exit(0)


def _become(script: str, call: dict[str, Any], output: int, said: bytes) -> NoReturn:
    """Be as the interpreter would be that was started so and has said this, and run the script."""
    os.setsid()
    if call["network"]:
        with open(f"/run/netns/{call['network']}", "rb") as network:
            if ctypes.CDLL(None, use_errno=True).setns(network.fileno(), _NEW_NETWORK):
                raise OSError(ctypes.get_errno(), "setns")
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    os.write(1, said)
    os.chdir(call["cwd"])
    os.environ.clear()
    os.environ.update(call["env"])
    time.tzset()
    tempfile.tempdir = None
    sys.argv = [script, *call["args"]]
    main = types.ModuleType("__main__")
    main.__file__ = script
    sys.modules["__main__"] = main
    code: object = None
    try:
        exec(compile(Path(script).read_bytes(), script, "exec"), main.__dict__)
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    _end_with(0 if code is None else code)


def _end_with(code: object) -> NoReturn:
    """As an interpreter, without the tidying of all that was imported, which takes seconds."""
    if not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    os._exit(code)


if __name__ == "__main__":
    keep()
