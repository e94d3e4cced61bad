"""A real ssh server on loopback: own host key, own user key, own configurations, nobody's else.

ssh reads `~/.ssh` of the account, whatever HOME says: every client here is given `config`, which
names all that it would look for there.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from tests.support.netns import Node
from tests.support.tunnel import Tunnel

NODE = "node"
"""The name that `config` gives to the server."""


class Sshd:
    """Runs while it is used as a context. Its files, logs and keys lie in `folder`."""

    def __init__(
        self,
        folder: Path,
        options: str = "",
        environment: dict[str, str] | None = None,
        *,
        name: str = NODE,
        inside: Node | None = None,
    ):
        """`name`: what `config` calls it. `inside`: it runs in that network namespace."""
        self.folder = folder
        self.name = name
        self._inside = inside
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.config = folder / "client"
        self._log = folder / "log"
        self._keys()
        self.serve_config(options, environment or {})
        self.write_client()

    def _keys(self) -> None:
        for name in ("host", "user", "stranger"):
            path = self.folder / name
            if not path.exists():
                subprocess.run(
                    ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", path],
                    check=True,
                )
        shutil.copy(self.folder / "user.pub", self.folder / "authorized")
        self.know("host")

    def know(self, key: str) -> None:
        """Let clients know the server by the public half of `key`; "" for not at all."""
        public = (self.folder / f"{key}.pub").read_text(encoding="utf-8") if key else ""
        line = f"[127.0.0.1]:{self.port} {public}" if key else ""
        (self.folder / "known").write_text(line, encoding="utf-8")

    def serve_config(self, options: str, environment: dict[str, str]) -> None:
        given = " ".join(f'"{key}={value}"' for key, value in environment.items())
        (self.folder / "server").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.folder}/host\n"
            f"AuthorizedKeysFile {self.folder}/authorized\nPidFile none\nUsePAM no\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\nStrictModes no\n"
            "PermitRootLogin prohibit-password\nUseDNS no\nMaxStartups 100\n"
            + (f"SetEnv {given}\n" if given else "")
            + f"{options}\n",
            encoding="utf-8",
        )

    def write_client(self, key: str = "user", port: int | None = None) -> None:
        (self.config).write_text(
            f"Host {self.name} other\n  HostName 127.0.0.1\n  Port {port or self.port}\n"
            f"  User {pwd.getpwuid(os.getuid()).pw_name}\n  IdentityFile {self.folder}/{key}\n"
            "  IdentitiesOnly yes\n  IdentityAgent none\n"
            f"  UserKnownHostsFile {self.folder}/known\n  GlobalKnownHostsFile /dev/null\n",
            encoding="utf-8",
        )

    def __enter__(self) -> Self:
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        command = [_program(), "-D", "-e", "-f", str(self.folder / "server")]
        if self._inside is not None:
            command = self._inside.command(*command)
            self.tunnel = Tunnel(self._inside, self.port).__enter__()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        until = time.monotonic() + 20
        try:
            while not _answers(self.port):
                assert self._process.poll() is None, self._log.read_text(encoding="utf-8")
                assert time.monotonic() < until, "the ssh server does not answer"
                time.sleep(0.02)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        if self._inside is not None:
            self.tunnel.__exit__()

    def cut(self) -> None:
        """End every connection that stands, as a link that is cut; the server goes on."""
        for pid in self.sessions():
            os.kill(pid, 9)

    def sessions(self) -> list[int]:
        """The server's processes that hold a connection."""
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        return [int(pid) for pid in children.read_text(encoding="utf-8").split()]


def _program() -> str:
    found = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    assert found, "sshd is not installed: run ci/install-test-packages.sh"
    return found


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as line:
            return line.recv(4) == b"SSH-"
    except OSError:
        return False


@contextmanager
def deaf() -> Iterator[int]:
    """A port where connections are taken and nothing is ever said."""
    with socket.create_server(("127.0.0.1", 0), backlog=8) as server:
        yield int(server.getsockname()[1])
