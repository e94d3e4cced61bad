"""The connection to a node: one for all programs that run there, and gone when we are."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from patchq.cluster.process import Held, run_program
from patchq.cluster.trouble import refused
from patchq.errors import Incomplete, PatchqError
from patchq.paths import show

CONNECTING = 60.0
"""Seconds until a connection must stand, authentication included."""
_TRIES = 3
"""A port that is free now may be somebody else's a moment later."""
_MARK = "patchq-connected"
_LONGEST_FOLDER = 60
"""A socket's address may have 107 bytes; ssh adds 17 to the name that it is given."""
OPTIONS = (
    *("-T", "-x"),
    *("-o", "BatchMode=yes"),
    *("-o", "LogLevel=ERROR"),
    *("-o", "ConnectTimeout=15"),
    *("-o", "ServerAliveInterval=10"),
    *("-o", "ServerAliveCountMax=3"),
    *("-o", "ClearAllForwardings=yes"),
    *("-o", "PermitLocalCommand=no"),
    *("-o", "RemoteCommand=none"),
    *("-o", "ControlPersist=no"),
)

# Runs a program on the node and ends it, with all that it started, when ssh's end of the line is
# gone: a program without a terminal would go on after a Ctrl-C here, or a cut link.
KEEPER = """
import os, signal, subprocess, sys, threading, time
try:
    child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, start_new_session=True)
except OSError as error:
    sys.exit(f"{sys.argv[1]}: {error.strerror}")
def end():
    while os.read(0, 4096):
        pass
    gone.set()
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            return
        for _ in range(20):
            time.sleep(0.1)
            try:
                os.killpg(child.pid, 0)
            except ProcessLookupError:
                return
gone = threading.Event()
watch = threading.Thread(target=end, daemon=True)
watch.start()
code = child.wait()
if gone.is_set():
    watch.join()
sys.exit(code if code >= 0 else 128 - code)
"""


class Line:
    """One connection that all programs on the node share.

    Its session waits for the end of its input, which this process holds: the connection ends with
    us, a kill included, and leaves nothing behind on either side.
    """

    def __init__(self, ssh: Sequence[str], target: str) -> None:
        folder = Path(tempfile.mkdtemp(prefix="patchq-", dir=_short_folder()))
        address, said = str(folder / "s"), folder / "said"
        self.options = ("-S", address, "-o", "ControlMaster=no")
        try:
            with said.open("wb") as file:
                self._master = Held(
                    [*ssh, "-M", "-S", address, "--", target, f"echo {_MARK}; exec cat"], file
                )
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self._target, self._said = target, said
        self._lock, self._stands = threading.Lock(), False
        self.close = weakref.finalize(self, _end, self._master, folder)
        """Safe at any time, from any thread."""

    def stand(self) -> None:
        """Wait until the connection stands. Raises Unreachable, and then it is closed."""
        with self._lock:
            if self._stands:
                return
            self._stands = self._master.says(_MARK.encode(), CONNECTING)
            if not self._stands:
                ended = self._master.ended(1.0)
                words = ""
                with suppress(FileNotFoundError):
                    words = self._said.read_text(encoding="utf-8", errors="replace")
                self.close()
                raise refused(self._target, words, ended=ended)

    def forward(self, host: str, port: int) -> int:
        """A port of 127.0.0.1 here that leads to `host`:`port` there, as long as the connection.

        Raises Incomplete where the machine does not allow it.
        """
        far = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        last = ""
        for _ in range(_TRIES):
            with socket.create_server(("127.0.0.1", 0)) as free:
                near = int(free.getsockname()[1])
            # No configuration: the connection stands, and the user's own forwardings are not ours.
            command = ["ssh", "-F", "none", *self.options[:2], "-O", "forward"]
            command += ["-L", f"127.0.0.1:{near}:{far}", "--", self._target]
            done = run_program(command, f"a way to {far} of {self._target}", timeout=CONNECTING)
            if done.code == 0:
                return near
            last = show(done.stderr.decode("utf-8", "replace").strip())[-200:]
        raise Incomplete(
            f"no way to {far} of {self._target}: {last or 'ssh does not say why'}",
            "see that its ssh server allows it (AllowTcpForwarding)",
        )

    def broke(self, wait: float = 0.5) -> bool:
        """Whether the connection is gone, or goes within `wait` seconds."""
        return self._master.ended(wait)


def _end(master: Held, folder: Path) -> None:
    master.end()
    shutil.rmtree(folder, ignore_errors=True)


def _short_folder() -> str:
    """Where sockets may lie: private to the user, with a name that leaves room for theirs."""
    places = [os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir()]
    for place in places:
        if place and len(os.fsencode(place)) <= _LONGEST_FOLDER and os.access(place, os.W_OK):
            return place
    raise PatchqError(
        f"{places[1]} is too long a name for the address of a socket",
        "set TMPDIR to a folder with a short name",
    )
