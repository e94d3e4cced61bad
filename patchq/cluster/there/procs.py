"""A rank's processes and its shared memory, by /proc (proc(5)).

A rank lives in a session of its own. A session's number is not given away while one of its
processes lives, so it names them all, those whose parents are dead included. Processes that begin
another session are found below them: their guard adopts orphans.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

SHARED = "/dev/shm/"  # noqa: S108 - where shm_open(3) puts its objects
_BOOT = "/proc/sys/kernel/random/boot_id"
TICK = 0.05


class Process(NamedTuple):
    """`state` as ps shows it; `began` in ticks since the machine's start."""

    state: str
    parent: int
    session: int
    began: int


def process(pid: int) -> Process | None:
    """None where it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(") ")[2].split()
    except OSError:
        return None
    if fields[0] in "ZX":
        return None
    return Process(fields[0], int(fields[1]), int(fields[3]), int(fields[19]))


def living() -> dict[int, Process]:
    found = ((int(pid), process(int(pid))) for pid in os.listdir("/proc") if pid.isdigit())
    return {pid: each for pid, each in found if each is not None}


def boot() -> str:
    with open(_BOOT, encoding="utf-8") as file:
        return file.read().strip()


def identity(pid: int) -> dict[str, Any]:
    """What tells this process from a later one that has its number."""
    found = process(pid)
    return {"pid": pid, "began": found.began if found else -1, "boot": boot()}


def family(leader: dict[str, Any]) -> dict[int, Process]:
    """The living processes of the session that `identity` named, and those below them."""
    if leader["boot"] != boot():
        return {}
    there = living()
    head = there.get(leader["pid"])
    if head is not None and head.began != leader["began"]:
        return {}  # the number went to somebody else
    found = {pid: each for pid, each in there.items() if each.session == leader["pid"]}
    more = found
    while more:
        more = {
            pid: each for pid, each in there.items() if pid not in found and each.parent in found
        }
        found.update(more)
    return found


def adopt() -> None:
    """Become the parent of orphans below (prctl(2), PR_SET_CHILD_SUBREAPER)."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


def send(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def gone(leader: dict[str, Any], within: float, but: Iterable[int] = ()) -> bool:
    """Whether the family ends within so many seconds."""
    until = time.monotonic() + within
    while set(family(leader)) - set(but):
        if time.monotonic() > until:
            return False
        time.sleep(TICK)
    return True


def end(leader: dict[str, Any], first: int, patience: float, but: int) -> list[int]:
    """End the family: `first` is asked to, then all but `but` are, who ends by itself.

    A frozen process is thawed to hear it. Who does not listen within `patience` seconds is killed,
    `but` included; returns who had to be.
    """
    members = family(leader)
    asked = [first] if first in members else [pid for pid in members if pid != but]
    send(asked, signal.SIGTERM)
    send(members, signal.SIGCONT)
    if gone(leader, patience):
        return []
    killed = sorted(family(leader))
    for _ in range(3):  # what was forked meanwhile, too
        send(family(leader), signal.SIGKILL)
        if gone(leader, 3.0):
            break
    return killed


def shared(pids: Iterable[int]) -> set[str]:
    """The shared memory objects that these processes have mapped or open, by path.

    A semaphore is mapped under a name that it had for a moment only (sem_open(3) of glibc); what it
    is called now, its inode says. An object that was made this moment is open and not mapped yet.
    """
    found, semaphores = set(), None
    for pid in pids:
        try:
            with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
                for line in file:
                    place = line.find(SHARED)
                    if place > 0 and not line.endswith("(deleted)\n"):
                        found.add(line[place:-1])
                    elif place > 0:
                        semaphores = inodes("sem.") if semaphores is None else semaphores
                        found.update(semaphores.get(int(line.split()[4]), ()))
            found.update(opened(pid))
        except OSError:
            continue
    return found


def opened(pid: int) -> set[str]:
    """The shared memory objects that a process has open, by path."""
    found = set()
    for number in os.listdir(f"/proc/{pid}/fd"):
        try:
            path = os.readlink(f"/proc/{pid}/fd/{number}")
        except OSError:
            continue
        if path.startswith(SHARED) and not path.endswith(" (deleted)"):
            found.add(path)
    return found


def inodes(start: str) -> dict[int, list[str]]:
    """The paths of shared memory objects whose names begin so, by inode."""
    found: dict[int, list[str]] = {}
    for name in os.listdir(SHARED):
        if name.startswith(start):
            try:
                number = os.stat(SHARED + name).st_ino
            except OSError:
                continue
            found.setdefault(number, []).append(SHARED + name)
    return found


def unlink(paths: Iterable[str]) -> None:
    """Remove shared memory objects that nobody has mapped any more."""
    wanted = set(paths)
    if not wanted:
        return
    for path in wanted - shared(living()):
        try:
            os.unlink(path)
        except OSError:
            continue
