"""Start programs of this machine, and end them with all that they started.

Each gets a session of its own: a Ctrl-C reaches us first, and we end them in order.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from patchq.errors import Incomplete, PatchqError

NOT_FOUND = 127
"""The code of a program that is not there, as shells give it."""
_SECRETS = ("GITHUB_TOKEN", "GH_TOKEN")
_CHUNK = 65536
CLOSING = 0.5
"""Seconds until a stream notices that it was closed."""


@dataclass(frozen=True)
class Done:
    """A program that ended: its exit code (128 + N for a signal) and what it wrote."""

    code: int
    stdout: bytes
    stderr: bytes


def run_program(
    command: Sequence[str],
    what: str,
    input: bytes | None = None,
    timeout: float | None = None,
) -> Done:
    """Run `command` to its end. Raises Incomplete after `timeout` seconds, named `what`."""
    try:
        process = _start(command, subprocess.PIPE, subprocess.PIPE, feed=input is not None)
    except OSError as error:
        return Done(NOT_FOUND, b"", f"{command[0]}: {error.strerror}".encode())
    try:
        out, err = process.communicate(input, timeout)
    except subprocess.TimeoutExpired:
        _kill(process)
        raise _late(what, timeout) from None
    except BaseException:
        _kill(process)
        raise
    finally:
        _close(process)
    return Done(_code(process), out, err)


def stream_program(
    command: Sequence[str],
    what: str,
    sink: Callable[[bytes], None],
    timeout: float | None = None,
    closed: threading.Event | None = None,
) -> int:
    """Run `command`, handing on what it writes as it comes; its exit code.

    Its input stays open and empty until it ends. Raises Incomplete as `run_program` does, and once
    `closed` is set.
    """
    try:
        process = _start(command, subprocess.PIPE, subprocess.STDOUT, feed=True)
    except OSError as error:
        sink(f"{command[0]}: {error.strerror}\n".encode())
        return NOT_FOUND
    assert process.stdin is not None and process.stdout is not None
    until = None if timeout is None else time.monotonic() + timeout
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while True:
                left = CLOSING if until is None else until - time.monotonic()
                if left <= 0:
                    raise _late(what, timeout)
                if closed is not None and closed.is_set():
                    raise Incomplete(f"{what} was ended", "run it again")
                if not selector.select(min(left, CLOSING)):
                    continue
                if not (chunk := os.read(process.stdout.fileno(), _CHUNK)):
                    break
                sink(chunk)
        process.wait()
    except BaseException:
        _kill(process)
        raise
    finally:
        _close(process)
    return _code(process)


class Held:
    """A program that waits for the end of its input, and so ends with us at the latest."""

    def __init__(self, command: Sequence[str], stderr: IO[bytes] | None = None) -> None:
        """`stderr` goes where stdout goes, unless it is given."""
        self._reading = threading.Lock()
        self.heard = b""
        try:
            err = subprocess.STDOUT if stderr is None else stderr
            self._process = _start(command, subprocess.PIPE, err, feed=True)
        except OSError as error:
            raise PatchqError(
                f"{command[0]} does not start: {error.strerror}",
                "install it (Debian, Ubuntu: apt-get install openssh-client)",
            ) from None

    def says(self, word: bytes, timeout: float) -> bool:
        """Whether it writes `word` before it ends, or before `timeout` seconds are over.

        `heard` is all that it wrote until then.
        """
        assert self._process.stdout is not None
        until = time.monotonic() + timeout
        with self._reading, selectors.DefaultSelector() as selector:
            if self._process.stdout.closed:
                return False
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while word not in self.heard:
                left = until - time.monotonic()
                if left <= 0 or not selector.select(left):
                    return False
                if not (chunk := os.read(self._process.stdout.fileno(), _CHUNK)):
                    return False
                self.heard += chunk
        return True

    def ended(self, wait: float = 0.0) -> bool:
        """Whether it has ended, or does so within `wait` seconds."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(wait)
        return self._process.returncode is not None

    def end(self) -> None:
        """End it: by the end of its input, or harder. A thread in `says` comes back at once."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        if not self.ended(0.5):
            _kill(self._process)
        with self._reading:
            _close(self._process)


def _start(
    command: Sequence[str], out: int, err: int | IO[bytes], *, feed: bool
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE if feed else subprocess.DEVNULL,
        stdout=out,
        stderr=err,
        env={key: value for key, value in os.environ.items() if key not in _SECRETS},
        start_new_session=True,
    )


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the program's whole session, gently first."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(2.0)


def _close(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.close()


def _code(process: subprocess.Popen[bytes]) -> int:
    code = process.returncode
    return code if code >= 0 else 128 - code


def _late(what: str, timeout: float | None) -> Incomplete:
    return Incomplete(
        f"{what} took more than {timeout or 0:g} s",
        "see what holds it up; what it has begun may still be under way",
    )
