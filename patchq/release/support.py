"""What a maintainer needs to help: release, machines, logs, versions; nothing that tells who."""

from __future__ import annotations

import getpass
import json
import os
import platform
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import patchq
from patchq.cluster import logs, ranks
from patchq.cluster.config import Cluster
from patchq.config import cache_dir
from patchq.doctor import nodes
from patchq.errors import PatchqError
from patchq.progress import SILENT, Progress
from patchq.release import archive, installed
from patchq.release.archive import Member
from patchq.release.redact import Cleaner

LINES = 400
"""Of each rank's log, the last ones."""
KINDS = ("tokens", "addresses", "names")


@dataclass(frozen=True)
class File:
    name: str
    text: str


@dataclass(frozen=True)
class Parcel:
    """`path`: where `write` puts it; `removed`: how often something was taken out, by kind."""

    path: Path
    files: tuple[File, ...]
    removed: tuple[tuple[str, int], ...]


def pack(
    cluster: Cluster,
    out: Path | None = None,
    *,
    lines: int = LINES,
    progress: Progress = SILENT,
) -> Parcel:
    """Gather it; nothing is written. A machine that is not reached is part of what is told.

    Raises PatchqError where `out` is there already.
    """
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    path = (out or Path(f"patchq-support-{stamp}.tar.gz")).absolute()
    if path.exists():
        raise PatchqError(f"{path} is there already", "name another file with --out")
    cleaner = Cleaner(_names(cluster))
    found = tuple(
        File(name, cleaner.clean(text))
        for name, text in sorted(_gathered(cluster, lines, progress))
    )
    return Parcel(path, found, tuple((kind, cleaner.removed[kind]) for kind in KINDS))


def write(parcel: Parcel) -> None:
    """Put it into its file, at once; readable by this account alone."""
    top = parcel.path.name.removesuffix(".tar.gz")
    members = [
        Member(f"{top}/{each.name}", "100644", each.text.encode("utf-8", "replace"))
        for each in parcel.files
    ]
    beside = parcel.path.with_name(f".{parcel.path.name}.{os.getpid()}")
    mask = os.umask(0o077)
    try:
        archive.write(beside, members, int(time.time()))
        beside.replace(parcel.path)
    finally:
        os.umask(mask)
        beside.unlink(missing_ok=True)


def _names(cluster: Cluster) -> dict[str, str]:
    """What is known here of names, and what stands for them."""
    known: dict[str, str] = {}
    for host in {socket.gethostname(), socket.gethostname().partition(".")[0], socket.getfqdn()}:
        known[host] = "this-host"
    with suppress(KeyError, OSError):
        known[getpass.getuser()] = "user"
    for node in cluster.nodes:
        account, _, host = (node.ssh or "").rpartition("@")
        for name in (account, host, node.name):
            known[name] = "user" if name == account else f"node-{node.rank}"
    # Every system has these, and they say nothing.
    return {name: known[name] for name in known if name not in ("", "root", "here", "localhost")}


def _gathered(cluster: Cluster, lines: int, progress: Progress) -> Iterator[tuple[str, str]]:
    yield "versions.txt", _versions()
    yield "cluster.toml", _cluster_file(cluster)
    status = ranks.status(cluster, progress=progress)
    for node, state in zip(cluster.nodes, status.nodes, strict=True):
        yield f"node-{node.rank}.json", _json(_state(state))
    checks = nodes.check(cluster, progress=progress)
    yield (
        "doctor.txt",
        "".join(
            f"{each.state:8} {each.name}: {each.says}\n"
            + (f"    {each.reason}\n" if each.reason else "")
            for each in checks
        ),
    )
    progress.step("reading the logs")
    for node, told in zip(cluster.nodes, logs.read(cluster, lines=lines).nodes, strict=True):
        if isinstance(told, PatchqError):
            yield f"rank-{node.rank}.log", f"{told.message}\n"
            continue
        text = "".join(f"{line}\n" for run in told.found for line in run.lines)
        yield f"rank-{node.rank}.log", text or "no log is kept\n"
    crash = cache_dir() / "last-crash.log"
    if crash.is_file():
        yield "last-crash.log", crash.read_text(encoding="utf-8", errors="replace")[-65536:]


def _versions() -> str:
    try:
        system = platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
    except OSError:
        system = "unknown"
    return (
        f"patchq {patchq.__version__}\nPython {platform.python_version()}\n"
        f"{system}, {platform.system()} {platform.release()}, {platform.machine()}\n"
    )


def _cluster_file(cluster: Cluster) -> str:
    path = installed.home() / installed.CLUSTERS / f"{cluster.name}.toml"
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def _state(state: ranks.Status | PatchqError) -> Mapping[str, Any]:
    if isinstance(state, PatchqError):
        return {"error": state.message}
    return {
        "current": state.current,
        "previous": state.previous,
        "rank": state.rank,
        "alive": state.alive,
        "frozen": state.frozen,
        "processes": state.processes,
        "starts": state.starts,
        "health": state.health,
        "progress": state.progress,
    }


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, sort_keys=True) + "\n"
