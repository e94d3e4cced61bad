"""A page in a real Chromium, asked over the DevTools protocol by two pipes: no client is needed."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PATIENCE = 60.0
NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",  # the tests run as root, and show pages of ours
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--remote-debugging-pipe",
)
START = """
import os, sys
for place, given in enumerate(sys.argv[1:3], 3):
    os.dup2(int(given), place)
os.execv(sys.argv[3], sys.argv[3:])
"""


@dataclass
class Browser:
    """One tab. `asked`: the address of everything that it has asked for."""

    reading: int
    writing: int
    asked: list[str] = field(default_factory=list)
    session: str = ""
    loaded: bool = False
    _number: int = 0
    _rest: bytes = b""

    def call(self, method: str, **params: Any) -> Any:
        """What a method of the protocol answers."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.writing, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == self._number:
                assert "error" not in found, found["error"]
                return found["result"]

    def open(self, page: Path, width: int, height: int = 900, *, dark: bool = False) -> None:
        """Show a file, and wait until it is all there."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.loaded = False
        self.call("Page.navigate", url=page.as_uri())
        while not self.loaded:
            self._next()

    def value(self, script: str) -> Any:
        """What an expression in the page comes to, or its promise."""
        found = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self.reading], [], [], end - time.monotonic())
            assert ready, "the browser does not answer"
            more = os.read(self.reading, 1 << 16)
            assert more, "the browser has ended"
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        if found.get("method") == "Page.loadEventFired":
            self.loaded = True
        elif found.get("method") == "Network.requestWillBeSent":
            self.asked.append(found["params"]["request"]["url"])
        return found


def chromium() -> str | None:
    """The program, where there is one."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A Chromium that keeps its things in `folder`."""
    program = chromium()
    assert program is not None
    (its, ours), (mine, theirs) = os.pipe(), os.pipe()
    # Above 3 and 4, which the browser reads and writes.
    given = [fcntl.fcntl(each, fcntl.F_DUPFD, 20) for each in (its, theirs)]
    command = [sys.executable, "-c", START, *map(str, given), program, *FLAGS]
    process = subprocess.Popen(
        [*command, f"--user-data-dir={folder}", "about:blank"],
        pass_fds=given,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for each in (its, theirs, *given):
        os.close(each)
    try:
        found = Browser(mine, ours)
        target = found.call("Target.createTarget", url="about:blank")["targetId"]
        found.session = found.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Network"):
            found.call(f"{domain}.enable")
        yield found
    finally:
        process.kill()
        process.wait()
        os.close(mine)
        os.close(ours)
