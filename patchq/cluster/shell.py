"""Programs on a node, and files to and from it: this machine, or another by ssh and rsync.

Another machine is reached by the system's own `ssh` with the user's configuration, agent and keys:
what `ssh TARGET` does by hand, this does. Arguments stay arguments: they are quoted for the login
shell of the node, and nothing is pasted into a command.
"""

from __future__ import annotations

import os
import re
import shlex
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Protocol, Self

from patchq.cluster.line import KEEPER, OPTIONS, Line
from patchq.cluster.process import Done, Held, run_program, stream_program
from patchq.cluster.trouble import Unreachable, lost, uncopied
from patchq.errors import PatchqError

TARGET = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.+-]*@)?[A-Za-z0-9_][A-Za-z0-9_.-]*")
"""USER@HOST, HOST, or a name from the user's ssh configuration; never an option."""


class Shell(Protocol):
    """Where programs run. Safe for several threads at once; `close` it, or use `with`."""

    @property
    def name(self) -> str:
        """For messages: the ssh target, or "this machine"."""

    def run(
        self, args: Sequence[str], *, input: bytes | None = None, timeout: float | None = None
    ) -> Done:
        """Run a program to its end. One that is not there gives code 127.

        Raises Incomplete after `timeout` seconds (on a node the program may go on), or where the
        node is not reached.
        """

    def stream(
        self, args: Sequence[str], sink: Callable[[bytes], None], timeout: float | None = None
    ) -> int:
        """Run a program, handing on stdout and stderr, mixed, as they come; its exit code.

        The program and what it started end with this call, whatever ends it. A node needs
        python3 for that. Raises Incomplete as `run` does.
        """

    def hold(self, args: Sequence[str]) -> Held:
        """Start a program that ends with its input, and so with us and with the connection."""

    def send(self, local: Path, remote: str) -> None:
        """Copy a file to the path `remote`, or what is in a folder into the folder `remote`.

        Missing folders are made, each file is switched at once, a copy that broke off goes on
        where it was, nothing is deleted. Raises Incomplete.
        """

    def fetch(self, remote: str, local: Path) -> None:
        """The same, the other way. Raises PatchqError where `remote` does not exist."""

    def forward(self, host: str, port: int) -> tuple[str, int]:
        """Where `host`:`port` of the machine is reached from here; until `close`.

        Raises Incomplete.
        """

    def close(self) -> None:
        """End the connection for good, and what still runs over it."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


def local() -> Shell:
    """This machine."""
    return _Local()


def ssh(target: str, config: Path | None = None) -> Shell:
    """The machine that `ssh TARGET` reaches, by the user's configuration or by `config` alone.

    Connects at the first use. Raises PatchqError for a target that ssh could take for an option.
    """
    if not TARGET.fullmatch(target):
        raise PatchqError(
            f"{target!r} is no ssh target",
            "write HOST or USER@HOST; what else it takes (port, key, address) is said in ssh's"
            " own configuration, under a name",
        )
    return _Ssh(target, config)


class _Files(ABC):
    """Copying, alike for both: rsync, which makes beside and then renames."""

    name: str

    @abstractmethod
    def run(
        self, args: Sequence[str], *, input: bytes | None = None, timeout: float | None = None
    ) -> Done: ...

    @abstractmethod
    def _way(self) -> tuple[list[str], str]:
        """rsync's options that lead to the machine, and what stands before a path on it."""

    def send(self, local: Path, remote: str) -> None:
        if not local.exists():
            raise PatchqError(f"{local} does not exist", "name a file or folder that does")
        folder = local.is_dir()
        parent = remote if folder else str(PurePosixPath(remote).parent)
        made = self.run(["mkdir", "-p", "--", parent])
        if made.code != 0:
            raise uncopied(self.name, remote, made)
        self._copy(_absolute(local, folder), remote, to=True)

    def fetch(self, remote: str, local: Path) -> None:
        folder = self.run(["test", "-d", remote]).code == 0
        if not folder and self.run(["test", "-e", remote]).code != 0:
            raise PatchqError(
                f"{self.name} has no {remote}", "see whether it was made, and under which name"
            )
        (local if folder else local.parent).mkdir(parents=True, exist_ok=True)
        self._copy(_absolute(local, folder), f"{remote}/" if folder else remote, to=False)

    def _copy(self, here: str, there: str, *, to: bool) -> None:
        options, before = self._way()
        if before == "" and not there.startswith("/"):
            there = f"./{there}"
        # By itself rsync compares whole seconds, and leaves what was changed within one as it was.
        exact = "--modify-window=-1"
        command = ["rsync", "-a", "-s", exact, "--partial-dir=.patchq-partial", *options, "--"]
        command += [here, before + there] if to else [before + there, here]
        done = run_program(command, "rsync")
        if done.code != 0:
            raise uncopied(self.name, there, done)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None: ...


def _absolute(local: Path, folder: bool) -> str:
    path = os.path.abspath(local)
    return f"{path}/" if folder else path


class _Local(_Files):
    name = "this machine"

    def __init__(self) -> None:
        self._closed = threading.Event()

    def run(
        self, args: Sequence[str], *, input: bytes | None = None, timeout: float | None = None
    ) -> Done:
        return run_program(args, shlex.join(args), input, timeout)

    def stream(
        self, args: Sequence[str], sink: Callable[[bytes], None], timeout: float | None = None
    ) -> int:
        return stream_program(args, shlex.join(args), sink, timeout, self._closed)

    def forward(self, host: str, port: int) -> tuple[str, int]:
        return host, port

    def close(self) -> None:
        self._closed.set()

    def hold(self, args: Sequence[str]) -> Held:
        return Held(args)

    def _way(self) -> tuple[list[str], str]:
        return [], ""


class _Ssh(_Files):
    def __init__(self, target: str, config: Path | None) -> None:
        self.name = target
        self._ssh = ["ssh", *(["-F", os.path.abspath(config)] if config else []), *OPTIONS]
        self._lock = threading.Lock()
        self._line: Line | None = None
        self._closed = False

    def run(
        self, args: Sequence[str], *, input: bytes | None = None, timeout: float | None = None
    ) -> Done:
        command, line = self._command(args)
        done = run_program(command, f"{shlex.join(args)} on {self.name}", input, timeout)
        if done.code == 255 and line.broke():
            raise lost(self.name, shlex.join(args))
        return done

    def stream(
        self, args: Sequence[str], sink: Callable[[bytes], None], timeout: float | None = None
    ) -> int:
        command, line = self._command(["python3", "-c", KEEPER, *args])
        what = f"{shlex.join(args)} on {self.name}"
        code = stream_program(command, what, sink, timeout)
        if code == 255 and line.broke():
            raise lost(self.name, shlex.join(args))
        return code

    def hold(self, args: Sequence[str]) -> Held:
        return Held(self._command(args)[0])

    def forward(self, host: str, port: int) -> tuple[str, int]:
        return "127.0.0.1", self._connected().forward(host, port)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._line is not None:
                self._line.close()

    def _command(self, args: Sequence[str]) -> tuple[list[str], Line]:
        line = self._connected()
        return [*self._ssh, *line.options, "--", self.name, shlex.join(args)], line

    def _way(self) -> tuple[list[str], str]:
        way = shlex.join([*self._ssh, *self._connected().options])
        return ["-e", way], f"{self.name}:"

    def _connected(self) -> Line:
        with self._lock:
            if self._closed:
                raise Unreachable(f"the connection to {self.name} was closed", "run it again")
            if self._line is not None and self._line.broke(0):
                self._line.close()
                self._line = None
            if self._line is None:
                self._line = Line(self._ssh, self.name)
            line = self._line
        line.stand()
        return line
