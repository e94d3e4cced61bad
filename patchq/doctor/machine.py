"""A node by itself: processor, driver, memory, disk, ports, clock. A finding is a Check, or a few
words where all is well."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from patchq.build.target import find
from patchq.cluster.config import Cluster, Node
from patchq.cluster.facts import Facts
from patchq.doctor.model import Check
from patchq.paths import show

GIB = 1 << 30
MOST_AHEAD = 1.0
"""Seconds that a clock may be ahead or behind."""


@dataclass(frozen=True)
class Graphics:
    """What a target's wheel asks of the graphics processor. The driver's branch is the least for
    that CUDA (NVIDIA's CUDA release notes, "CUDA Toolkit and Corresponding Driver Versions")."""

    driver: int
    cuda: tuple[int, int]
    capability: str = ""


GRAPHICS = {
    "spark": Graphics(driver=580, cuda=(13, 0), capability="12.1"),
    "cuda-x86_64": Graphics(driver=580, cuda=(13, 0)),
}

Finding = Check | str


def findings(
    cluster: Cluster, node: Node, found: Facts, artifact: Path | None
) -> Iterator[Finding]:
    yield _processor(cluster, node, found, artifact)
    if (graphics := GRAPHICS.get(cluster.target)) is not None:
        yield from _graphics(graphics, node, found)
    yield from _memory(cluster, node, found)
    yield _disk(cluster, node, found)
    if node.rank == 0:
        yield from _ports(cluster, node, found)
    yield from _clock(node, found)


def unread(node: Node, found: Facts, fact: str, what: str) -> Check:
    """A fact that the node could not find out."""
    why = show(found.failed.get(fact, "it does not say"))
    return Check(
        f"{node.name} {fact}",
        "unknown",
        f"{what} of {node.name} could not be found out: {why}",
        remedy="see whether that account may read /proc and /sys there",
    )


def _processor(cluster: Cluster, node: Node, found: Facts, artifact: Path | None) -> Finding:
    wheel = re.search(r"_(aarch64|x86_64)\.whl$", artifact.name) if artifact else None
    wanted = wheel[1] if wheel else find(cluster.target).machine
    what = f"{artifact.name} is" if artifact and wheel else f"the target {cluster.target} is"
    machine = show(found.machine)
    if machine == wanted:
        return machine
    return Check(
        f"{node.name} processor",
        "fatal",
        f"{node.name} is {machine}, {what} for {wanted}",
        "its shared objects do not load there (exec format error)",
        f"build for this machine (`patchq build --target`), or correct `target` of {cluster.name}",
    )


def _graphics(wanted: Graphics, node: Node, found: Facts) -> Iterator[Finding]:
    name, cuda = f"{node.name} driver", ".".join(map(str, wanted.cuda))
    update = f"install NVIDIA's driver {wanted.driver} or newer, then restart the machine"
    if found.driver is None:
        yield Check(name, "fatal", f"{node.name} has no NVIDIA driver loaded", remedy=update)
        return
    driver = show(found.driver)
    if _numbers(driver)[:1] < (wanted.driver,):
        yield Check(
            name,
            "fatal",
            f"{node.name} has driver {driver}, older than {wanted.driver}",
            f"the runner is built for CUDA {cuda}",
            update,
        )
        return
    if found.gpu is None:
        why = show(found.failed.get("gpu", "its library is not installed"))
        yield Check(
            name,
            "fatal",
            f"driver {driver} of {node.name} does not answer: {why}",
            "after an update the loaded module and the library differ until a restart",
            f"run `nvidia-smi` on {node.name}; restart the machine",
        )
        return
    if _numbers(found.gpu.cuda) < wanted.cuda:
        yield Check(
            name,
            "fatal",
            f"driver {driver} of {node.name} takes CUDA {show(found.gpu.cuda)} at most",
            f"the runner is built for CUDA {cuda}",
            update,
        )
        return
    devices = ", ".join(f"{show(each)} ({show(able)})" for each, able in found.gpu.devices)
    fits = [able for _, able in found.gpu.devices if wanted.capability in ("", able)]
    if not fits:
        yield Check(
            f"{node.name} graphics processor",
            "fatal",
            f"{node.name} has {devices or 'no graphics processor'},"
            f" the runner is compiled for {wanted.capability or 'one'}",
            "its kernels are not in the wheel (no kernel image is available)",
            "build for another target, or name another node",
        )
        return
    yield f"{devices}, driver {driver}, CUDA {show(found.gpu.cuda)}"


def _memory(cluster: Cluster, node: Node, found: Facts) -> Iterator[Finding]:
    if found.memory is None:
        yield unread(node, found, "memory", "the memory")
        return
    has, needs = found.memory, cluster.needs
    if has.available < needs.memory * GIB:
        yield Check(
            f"{node.name} memory",
            "fatal",
            f"{node.name} has {_gib(has.available)} of memory available"
            f" ({_gib(has.free)} free, {_gib(has.total)} in all), {needs.memory:g} are needed",
            "short of memory, a load hangs or the whole machine locks up",
            "stop what uses it there (`ps aux --sort=-rss`), an old runner first",
        )
    else:
        yield f"{_gib(has.available)} of {_gib(has.total)} memory available"
    if has.swap < needs.swap * GIB:
        yield Check(
            f"{node.name} swap",
            "warning",
            f"{node.name} has {_gib(has.swap)} of swap, {needs.swap:g} are advised",
            "while shards are read, memory runs short for a moment, and the machine may lock up",
            "add a swap file, or load with `--load-format instanttensor`",
        )
    elif needs.swap:
        yield f"{_gib(has.swap)} swap"


def _disk(cluster: Cluster, node: Node, found: Facts) -> Finding:
    if found.disk is None:
        return unread(node, found, "disk", "the disk")
    folder, free = found.disk
    there = sum(each.size for files in (found.files or {}).values() for each in files or ())
    short = cluster.needs.disk * GIB - there - free
    if short <= 0:
        return f"{_gib(free)} disk free"
    return Check(
        f"{node.name} disk",
        "fatal",
        f"{node.name} has {_gib(free)} free at {show(folder)}, {cluster.needs.disk:g} are needed"
        + (f" (of which {_gib(there)} are there)" if there else ""),
        "the artifact, its environment and the model do not fit",
        f"make {_gib(short)} of room there, or name another `folder`",
    )


def _ports(cluster: Cluster, node: Node, found: Facts) -> Iterator[Finding]:
    if found.ports is None:
        yield unread(node, found, "ports", "the ports")
        return
    taken = {port: holder for port, holder in found.ports.items() if holder is not None}
    for port, holder in sorted(taken.items()):
        key = "port" if port == cluster.port else "master_port"
        yield Check(
            f"{node.name} port {port}",
            "fatal",
            f"port {port} of {node.name} is taken by {show(holder)}",
            "the runner cannot open it, and the other ranks would wait for ten minutes",
            f"stop that, or give `{key}` of {cluster.name} another number",
        )
    if not taken:
        yield f"ports {' and '.join(map(str, sorted(found.ports)))} free"


def _clock(node: Node, found: Facts) -> Iterator[Finding]:
    if abs(found.ahead) - found.doubt > MOST_AHEAD:
        way = "ahead of" if found.ahead > 0 else "behind"
        yield Check(
            f"{node.name} clock",
            "warning",
            f"the clock of {node.name} is {abs(found.ahead):.1f} s {way} the one here",
            "logs of the nodes do not line up, and builds misjudge what is newer",
            f"let {node.name} keep time (`timedatectl set-ntp true`)",
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def _gib(size: float) -> str:
    return f"{size / GIB:.1f} GiB"
