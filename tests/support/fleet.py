"""A project with a cluster of two nodes, each a home and a real ssh server, and what runs there."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from tests.build import wheels
from tests.support import netns, standin
from tests.support.inside import Said, call
from tests.support.sshd import Sshd

CLUSTER = """
target = "cpu"
port = {port}
master_port = {master}
ssh_config = "client"
"""
NODE = """
[[node]]
name = "{name}"
rank = {rank}
ssh = "{name}"
address = "127.0.0.{host}"
device = "lo"
"""
PROFILE = """
model = "tiny"
served_name = "tiny"
tensor_parallel = 2
[flags]
{flags}
[environment]
{environment}
[limits]
ready = {ready}
"""
PYTHON = sys.executable
ROOT = Path(__file__).resolve().parents[2]


def _port() -> int:
    """The first of two that no other worker of pytest-xdist takes."""
    return 18871 + 2 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


@dataclass
class Fleet:
    """`call` runs patchq in the project; `homes` are the nodes' home folders, by rank."""

    root: Path
    servers: tuple[Sshd, ...]
    homes: tuple[Path, ...]
    port: int = field(default_factory=_port)
    master: int = field(default_factory=lambda: _port() + 1)

    def call(self, *args: str, code: int | None = 0) -> Said:
        return call(self.root, "cluster", *args, code=code)

    def profile(
        self,
        name: str = "tiny",
        ready: float = 60,
        flags: str = "enforce-eager = true",
        **environment: str,
    ) -> str:
        """Write a profile."""
        lines = "\n".join(f'{key} = "{value}"' for key, value in environment.items())
        folder = self.root / "ci" / "profiles"
        folder.mkdir(parents=True, exist_ok=True)
        text = PROFILE.format(environment=lines, ready=ready, flags=flags)
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
        return name

    def cluster(self, *, python: str | None = PYTHON, **more: str) -> None:
        """Write the cluster `two`; `more`: lines for its nodes."""
        text = CLUSTER.format(port=self.port, master=self.master)
        for rank, server in enumerate(self.servers):
            text += NODE.format(name=server.name, rank=rank, host=rank + 1)
            text += f'python = "{python}"\n' if python else ""
            text += "".join(f'{key} = "{value}"\n' for key, value in more.items())
        self._write("two.toml", text)
        self._write("client", self._ways())

    def shipped(self) -> None:
        """The cluster `netns` as it is shipped, and how ssh reaches its nodes."""
        self._write("netns.toml", (ROOT / "ci/clusters/netns.toml").read_text(encoding="utf-8"))
        self._write("netns.ssh", self._ways())
        for home in self.homes:
            (home / "runner").symlink_to(Path(PYTHON).parents[1])

    def _ways(self) -> str:
        return "".join(f"Include {server.config}\n" for server in self.servers)

    def _write(self, name: str, text: str) -> None:
        folder = self.root / "ci" / "clusters"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")

    def wheel(self, version: str = "1.0", build: str = "") -> Path:
        """A wheel whose `vllm` is the stand-in; the same version with another `build` differs."""
        return standin_wheel(self.root / "dist" / (build or "first"), version, build)

    def record(self, rank: int) -> dict[str, object]:
        """What the node keeps of the rank that runs."""
        text = (self.homes[rank] / f"patchq/run/rank-{rank}.json").read_text(encoding="utf-8")
        found: dict[str, object] = json.loads(text)
        return found

    def pids(self, rank: int) -> list[int]:
        """The processes of the rank's session: its guard, itself, its children."""
        guard = self.record(rank)["guard"]
        assert isinstance(guard, dict)
        return [pid for pid, session in sessions().items() if session == guard["pid"]]

    def shared(self) -> list[str]:
        """The shared memory of the stand-ins on these nodes."""
        names = [standin.mark(str(home)) for home in self.homes]
        return [str(path) for name in names for path in Path("/dev/shm").glob(f"{name}-*")]

    def left(self) -> list[str]:
        """What is left of ranks: processes, shared memory, folders. Empty after a stop."""
        found = [f"{pid} {line}" for pid, line in standins(self.homes).items()]
        found += self.shared()
        for home in self.homes:
            found += [str(path) for path in home.glob("patchq/run/*.json")]
        return found


@contextmanager
def fleet(
    folder: Path, places: Sequence[netns.Node] = (), root: Path | None = None
) -> Iterator[Fleet]:
    """Two nodes on loopback: the cluster `two`. Or in the namespaces `places`: the shipped `netns`.

    `root`: a project that is there.
    """
    if root is None:
        root = folder / "project"
        (root / ".git" / "objects").mkdir(parents=True)
        (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    with ExitStack() as stack:
        if not places:
            # The stand-in is there at once.
            stack.enter_context(mock.patch("patchq.cluster.start.POLL", 0.2))
        servers, homes = [], []
        for rank in (0, 1):
            home = folder / f"home-{rank}"
            (home / "models" / "tiny").mkdir(parents=True)
            server = Sshd(
                folder / f"sshd-{rank}",
                environment={"HOME": str(home)},
                name=f"ns-{'ab'[rank]}" if places else f"node-{rank}",
                inside=places[rank] if places else None,
            )
            servers.append(stack.enter_context(server))
            homes.append(home)
        made = Fleet(root, tuple(servers), tuple(homes))
        if places:
            made.shipped()
        else:
            made.cluster()
        made.profile()
        yield made


def standin_wheel(folder: Path, version: str = "1.0", build: str = "") -> Path:
    source = Path(standin.__file__).read_bytes() + f"# {build}\n".encode()
    info = f"vllm-{version}.dist-info"
    entry = b"[console_scripts]\nvllm = vllm.standin:main\n"
    files = {"vllm/__init__.py": b"", "vllm/standin.py": source}
    return wheels.plain(folder, "vllm", version, {**files, f"{info}/entry_points.txt": entry})


def sessions() -> dict[int, int]:
    """The session of each living process."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(") ")[2].split()
        except OSError:
            continue
        if fields[0] not in "ZX":
            found[int(stat.parent.name)] = int(fields[3])
    return found


def standins(homes: Sequence[Path]) -> Mapping[int, str]:
    """Processes that run from one of the homes."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            environment = path.read_bytes().decode("utf-8", "replace")
            words = (path.parent / "cmdline").read_bytes().decode("utf-8", "replace")
        except OSError:
            continue
        if any(f"PYTHONPATH={home}/patchq/releases" in environment for home in homes):
            found[int(path.parent.name)] = re.sub(r"\0", " ", words)
    return found


def eventually(true: object, within: float = 120) -> bool:
    """Whether `true()` becomes so, within a time that is ample."""
    assert callable(true)
    until = time.monotonic() + within
    while not true():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True
