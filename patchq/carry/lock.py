"""One writer at a time, and no Ctrl-C in the middle of what it writes.

`.git/patchq/lock` is locked by the operating system, which lets go of it when its holder dies;
`.git/patchq/holder` only tells others who that is.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from patchq.carry.exchange import explained, remove_file
from patchq.config import Project
from patchq.errors import PatchqError


@contextmanager
def hold(project: Project, command: str, *, wait: float = 0) -> Iterator[None]:
    """Be the only patchq that writes to `project`; `wait` seconds for another to end.

    Raises PatchqError that names the holder, or says that the folder cannot be written.
    """
    import filelock

    holder = project.private / "holder"
    lock = filelock.FileLock(project.private / "lock")
    with explained("nothing was changed, run it again then"):
        project.private.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=wait, poll_interval=0.05)
        except filelock.Timeout as error:
            raise _held(holder) from error
    try:
        with explained("nothing was changed, run it again then"):
            _announce(holder, command)
        yield
    finally:
        with suppress(OSError):
            remove_file(holder)
        lock.release()


def _announce(holder: Path, command: str) -> None:
    import getpass

    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    told = {
        "pid": os.getpid(),
        "host": os.uname().nodename,
        "user": user,
        "command": command,
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    beside = holder.with_name(f"holder.{os.getpid()}")
    beside.write_text(json.dumps(told), encoding="ascii")
    beside.replace(holder)


def _held(holder: Path) -> PatchqError:
    try:
        told = json.loads(holder.read_bytes())
        who = (
            f"`patchq {told['command']}` of {told['user']} (process {told['pid']} on"
            f" {told['host']}, since {told['since']})"
        )
        remedy = f"wait for it to end, or end it with `kill {told['pid']}` on {told['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        who, remedy = "another patchq", "wait for it to end"
    return PatchqError(f"{who} is at work in {holder.parent.parent.parent}", f"{remedy}, and retry")


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Keep a Ctrl-C until the end of the block; a second one comes through at once."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Python interrupts its main thread only
        return
    waiting = False

    def later(_number: int, _frame: FrameType | None) -> None:
        nonlocal waiting
        if waiting:
            raise KeyboardInterrupt
        waiting = True

    previous = signal.signal(signal.SIGINT, later)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous if previous is not None else signal.SIG_DFL)
    if waiting:
        signal.raise_signal(signal.SIGINT)
