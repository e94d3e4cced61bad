"""A command in a process group of its own that does not outlive us, and how it is ended.

It is told to end by SIGINT, as by Ctrl-C: patchq's own commands then leave nothing half done. After
a grace its whole group is killed. Should we be killed, the kernel tells it (Linux: prctl(2),
PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress

_POLL = 0.05
_PDEATHSIG = 1


def follows_us() -> Callable[[], None]:
    """What a child does before it becomes the command: the `preexec_fn` of subprocess.

    To be called before any thread of ours runs, and in the process that starts the child.
    """
    parent, prctl = os.getpid(), None
    if sys.platform == "linux":
        import ctypes

        prctl = ctypes.CDLL(None, use_errno=True).prctl

    def ready() -> None:
        # Ignored where we run in a shell's background, and inherited from there.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if prctl is not None:
            prctl(_PDEATHSIG, int(signal.SIGINT), 0, 0, 0)
            if os.getppid() != parent:
                os._exit(128 + signal.SIGINT)

    return ready


def ended(process: subprocess.Popen[bytes], limit: float) -> bool:
    """Wait until it has ended, at most `limit` seconds. It is not reaped: its number stays its."""
    until = time.monotonic() + limit
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() >= until:
            return False
        time.sleep(_POLL)
    return True


def end(process: subprocess.Popen[bytes], grace: float) -> None:
    """See the leader of a session to its end, in `grace` seconds, and leave nothing of its group.

    A second interruption waits no longer.
    """
    try:
        if not ended(process, 0):
            os.killpg(process.pid, signal.SIGINT)
            ended(process, grace)
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
