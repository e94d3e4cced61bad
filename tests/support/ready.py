"""`patchq` in a process of its own, without waiting for an interpreter to start.

A Python that has imported all of patchq is kept beside the tests, and forks for each call: the
child has the arguments, environment, folder and streams that it would have as a program, runs
`main` and ends as an interpreter ends. What is not in it is what the start itself does with
PYTHONPATH, locale and the like (tests/test_startup.py, tests/scenarios/test_surroundings.py).

This file is also the program that is kept.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

BESIDE = ("git", "github", "jinja2", "requests", "rich.console", "rich.table", "tomlkit")
"""What patchq imports where it needs it."""
_LENGTH = 8


def run(
    args: tuple[str, ...], *, cwd: Path, env: Mapping[str, str]
) -> subprocess.CompletedProcess[bytes]:
    """`patchq ARGS`, with an empty stdin, as `subprocess.run(..., capture_output=True)` gives it.

    `env` is as of `tests.support.history.clean_env`: nothing in it is for the interpreter's start.
    """
    return _ready().run(args, cwd, env)


@functools.cache
def _ready() -> _Ready:
    return _Ready()


class _Ready:
    """The one that is kept; it ends with its last client. One call at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._line, its = socket.socketpair()
        with its:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(its.fileno())],
                env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": "/nonexistent"},
                pass_fds=[its.fileno()],
                stdin=subprocess.DEVNULL,
            )
        atexit.register(self._end)

    def _end(self) -> None:
        self._line.close()
        self._process.wait()

    def run(
        self, args: tuple[str, ...], cwd: Path, env: Mapping[str, str]
    ) -> subprocess.CompletedProcess[bytes]:
        told = json.dumps({"args": args, "cwd": str(cwd), "env": dict(env)}).encode()
        with self._lock, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            head = len(told).to_bytes(_LENGTH, "big")
            socket.send_fds(self._line, [head], [out.fileno(), err.fileno()])
            self._line.sendall(told)
            answer = self._line.recv(_LENGTH, socket.MSG_WAITALL)
            assert len(answer) == _LENGTH, "the Python that was kept has ended"
            code = int.from_bytes(answer, "big", signed=True)
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(["patchq", *args], code, out.read(), err.read())


def keep() -> None:
    """Fork for each call, and say how it ended; a child never comes back from here."""
    line = socket.socket(fileno=int(sys.argv[1]))
    import patchq
    from patchq.cli.main import main

    for found in pkgutil.walk_packages(patchq.__path__, "patchq."):
        # Those run as programs on other machines, or as `python -m`.
        if ".there." not in found.name and not found.name.endswith("__main__"):
            importlib.import_module(found.name)
    for name in BESIDE:
        importlib.import_module(name)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while call := _next(line):
        child = os.fork()
        if child == 0:
            line.close()
            _become(*call)
            _end_with(main())
        for stream in call[1]:
            os.close(stream)
        _, status = os.waitpid(child, 0)
        with contextlib.suppress(BrokenPipeError):
            code = os.waitstatus_to_exitcode(status)
            line.sendall(code.to_bytes(_LENGTH, "big", signed=True))


def _next(line: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    head, streams, _, _ = socket.recv_fds(line, _LENGTH, 2)
    if not head:
        return None
    head += line.recv(_LENGTH - len(head), socket.MSG_WAITALL) if len(head) < _LENGTH else b""
    told = line.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)
    return json.loads(told), streams


def _become(call: dict[str, Any], streams: list[int]) -> None:
    """Be as the interpreter would be that was started so."""
    for to, stream in enumerate(streams, 1):
        os.dup2(stream, to)
        os.close(stream)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(call["cwd"])
    os.environ.clear()
    os.environ.update(call["env"])
    time.tzset()
    tempfile.tempdir = None
    sys.argv = ["patchq", *call["args"]]


def _end_with(code: int) -> NoReturn:
    """As `sys.exit`, without the tidying of all that was imported, which takes longer than a run."""
    sys.stdout.flush()
    sys.stderr.flush()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    os._exit(code)


if __name__ == "__main__":
    keep()
