"""One command of a night: bounded in time, its two streams kept.

How it is ended stands in patchq/child.py. Should the night itself be killed, whatever is left of
the command holds the file `busy` locked, on which the next night waits.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

from patchq import child
from patchq.errors import PatchqError

GRACE = 45.0
"""Seconds from SIGINT to SIGKILL: a cluster's ranks are stopped in this time."""
MOST = 20 << 20
"""Bytes of a log that are kept: its beginning, where the first cause is, and some of its end."""
TAIL = 2 << 20
_POLL = 0.05


@dataclass(frozen=True)
class Ended:
    """How a command ended. `code`: its exit status, -N where signal N killed it; `late`: it was
    ended because its time was over."""

    code: int
    seconds: float
    late: bool = False


def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    out: Path,
    log: Path,
    busy: Path,
    limit: float,
    env: Mapping[str, str] | None = None,
    grace: float = GRACE,
    tell: Callable[[str], None] | None = None,
) -> Ended:
    """Run `argv` in the folder `cwd` for at most `limit` seconds; stdout to `out`, stderr to `log`.

    `tell` is given each line of stderr. An interruption (KeyboardInterrupt) is passed on to the
    command, and raised when that has ended. Raises PatchqError where it cannot be run.
    """
    began = time.monotonic()
    late = False
    with out.open("wb") as result, _Log(log) as kept, busy.open("a+b") as held:
        _wait(held, grace)
        process = _start(argv, cwd, result, held, env)
        reader = threading.Thread(target=_drain, args=(process.stderr, kept, tell), daemon=True)
        reader.start()
        try:
            late = not child.ended(process, limit)
        finally:
            child.end(process, grace)
            reader.join(timeout=5)
            if process.stderr is not None and not reader.is_alive():
                process.stderr.close()
    return Ended(process.returncode, time.monotonic() - began, late)


def _start(
    argv: Sequence[str],
    cwd: Path,
    result: BinaryIO,
    held: BinaryIO,
    env: Mapping[str, str] | None,
) -> subprocess.Popen[bytes]:
    try:
        # preexec_fn: no thread of ours runs here, the one that reads begins afterwards.
        process = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=None if env is None else dict(env),
            stdin=subprocess.DEVNULL,
            stdout=result,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=child.follows_us(),  # noqa: PLW1509
            pass_fds=(held.fileno(),),
        )
    except OSError as error:
        raise PatchqError(
            f"{argv[0]} cannot be run: {error.strerror or error}", "see that it is installed"
        ) from error
    held.seek(0)
    held.truncate()
    held.write(str(process.pid).encode())
    held.flush()
    return process


def _wait(held: BinaryIO, grace: float) -> None:
    """Take the lock of `busy`; what a killed night has left behind has `grace` seconds to end."""
    until = time.monotonic() + grace
    killed = False
    while True:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            pass
        if time.monotonic() >= until:
            if killed:
                raise PatchqError(
                    f"a command of an earlier night holds {held.name}, and does not end",
                    f"end it: `fuser {held.name}` shows which process it is",
                )
            held.seek(0)
            with suppress(ValueError, ProcessLookupError, PermissionError):
                os.killpg(int(held.read(20)), signal.SIGKILL)
            killed, until = True, time.monotonic() + 5
        time.sleep(_POLL)


def _drain(stream: IO[bytes] | None, log: _Log, tell: Callable[[str], None] | None) -> None:
    assert stream is not None
    with suppress(ValueError, OSError):  # closed at the end
        while line := stream.readline(1 << 16):
            log.add(line)
            if tell is not None and (said := line.decode("utf-8", "replace").strip()):
                tell(said)


class _Log:
    """A log whose middle is left out where it grows too long; a full disk does not stop it."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._room = MOST - TAIL
        self._tail: deque[bytes] = deque()
        self._held = self._left_out = 0

    def __enter__(self) -> _Log:
        return self

    def add(self, line: bytes) -> None:
        if len(line) <= self._room and not self._tail:
            self._room -= len(line)
            with suppress(OSError):
                self._file.write(line)
                self._file.flush()
            return
        self._tail.append(line)
        self._held += len(line)
        while self._held > TAIL:
            gone = len(self._tail.popleft())
            self._held -= gone
            self._left_out += gone

    def __exit__(self, *_: object) -> None:
        with suppress(OSError), self._file:
            if self._left_out:
                self._file.write(b"[%d bytes are left out]\n" % self._left_out)
            self._file.writelines(self._tail)
