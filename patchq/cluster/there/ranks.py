"""A rank on this node: start it, look at it, stop it. In the folder that is patchq's own there:

run/rank-N.json           what runs: its guard and its process, since when, its files
run/rank-N.starts         how often it was started since the runner was deployed
logs/RUN/rank-N.log       what it says, kept; RUN is the time of the start

Each rank has a guard, a process that waits for it: it notes how the rank ended, and removes what a
rank that was killed leaves behind, whether or not anybody is connected.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import traceback
from typing import Any

from patchq.cluster.there import files, lock, net, procs
from patchq.cluster.there.logs import last_lines

KEPT = 10
"""Runs whose logs are kept, this one included."""
YOUNG = 120.0
"""Seconds in which a rank makes its shared memory; after that it is looked at less often."""
OFTEN, SELDOM = 1.0, 20.0
NOTED = 3.0
"""Seconds that a guard is given to note the end of its rank."""


def start(asked: dict[str, Any]) -> dict[str, Any]:
    """Start a rank that does not run: {"started": record}, or why not ("running", "missing")."""
    folder, rank = asked["folder"], asked["rank"]
    before = record(folder, rank)
    if before is not None and procs.family(before["guard"]):
        return {"running": before}
    missing = [path for path in asked["needs"] if not os.path.exists(path)]
    if missing:
        return {"missing": missing}
    if before is not None:
        sweep(before)
    logs = os.path.join(folder, "logs", asked["run"])
    os.makedirs(logs, exist_ok=True)
    os.makedirs(os.path.join(folder, "run"), exist_ok=True)
    prune(os.path.join(folder, "logs"))
    count(folder, rank)
    said = {
        **{key: asked[key] for key in ("rank", "run", "by", "about", "port", "host")},
        "log": os.path.join(logs, f"rank-{rank}.log"),
        "since": time.time(),
        "ended": None,
        "shared": [],
        # Short: the address of a socket may have 107 bytes, and vLLM's have long names.
        "temporary": tempfile.mkdtemp(prefix="patchq-"),
    }
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(reading)
        try:
            guard(folder, asked, said, writing)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        return {"started": json.loads(pipe.read())}


def guard(folder: str, asked: dict[str, Any], said: dict[str, Any], tell: int) -> None:
    """The guard's life, in a session of its own with the rank."""
    os.setsid()
    procs.adopt()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # not ignored: the rank must not inherit that
    log = os.open(said["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for stream, opened in enumerate((nothing, log, log)):
        os.dup2(opened, stream)
    said["guard"] = procs.identity(os.getpid())
    environment = {**os.environ, **asked["environment"], "TMPDIR": said["temporary"]}
    environment["PATH"] = os.pathsep.join([*asked["path"], os.environ.get("PATH", os.defpath)])
    try:
        rank = subprocess.Popen(asked["command"], cwd=folder, env=environment)
    except OSError as error:
        os.write(log, f"{asked['command'][0]}: {error.strerror}\n".encode())
        said["ended"] = {"code": 127, "when": time.time()}
        answer(folder, said, tell)
        sweep(said)
        return
    said["pid"] = rank.pid
    answer(folder, said, tell)
    watch(folder, said, rank)
    code = rank.returncode
    said["ended"] = {"code": code if code >= 0 else 128 - code, "when": time.time()}
    write(folder, said)
    said["shared"] = sorted(set(said["shared"]) | procs.shared(procs.family(said["guard"])))
    procs.send(set(procs.family(said["guard"])) - {os.getpid()}, signal.SIGTERM)
    if not procs.gone(said["guard"], 10.0, but=[os.getpid()]):
        procs.send(set(procs.family(said["guard"])) - {os.getpid()}, signal.SIGKILL)
        procs.gone(said["guard"], 3.0, but=[os.getpid()])
    sweep(said)


def answer(folder: str, said: dict[str, Any], tell: int) -> None:
    write(folder, said)
    os.write(tell, json.dumps(said).encode())
    os.close(tell)


def watch(folder: str, said: dict[str, Any], rank: subprocess.Popen[bytes]) -> None:
    """Until the rank ends; meanwhile what shared memory its processes have is written down."""
    pause = 0.05
    while True:
        try:
            rank.wait(pause)
            return
        except subprocess.TimeoutExpired:
            pause = min(1.2 * pause, OFTEN if time.time() - said["since"] < YOUNG else SELDOM)
        there = set(said["shared"]) | procs.shared(procs.family(said["guard"]))
        there = {path for path in there if os.path.exists(path)}
        if there != set(said["shared"]):
            said["shared"] = sorted(there)
            write(folder, said)


def stop(asked: dict[str, Any]) -> dict[str, Any]:
    """Stop what runs as this rank: its record, who had to be killed, and who is left even so."""
    folder, rank = asked["folder"], asked["rank"]
    said = record(folder, rank)
    if said is None:
        return {"was": None, "killed": [], "left": []}
    guard_, first = said["guard"], said.get("pid", -1)
    ran = bool(procs.family(guard_))
    # Frozen until it is asked to end: what it made between our look and its end would stay.
    procs.send(set(procs.family(guard_)) - {guard_["pid"]}, signal.SIGSTOP)
    shared = procs.shared(procs.family(guard_))
    killed = procs.end(guard_, first, asked["patience"], guard_["pid"])
    said = record(folder, rank) or said
    said["shared"] = sorted(set(said["shared"]) | shared)
    left = sorted(procs.family(guard_))
    if not left:
        sweep(said)
        os.unlink(place(folder, rank))
    return {"was": said, "ran": ran, "killed": killed, "left": left}


def report(asked: dict[str, Any]) -> dict[str, Any]:
    """What is installed, who holds the lock, what runs."""
    return {
        **files.installed(asked),
        "lock": lock.holder(asked),
        **look(asked),
    }


def look(asked: dict[str, Any]) -> dict[str, Any]:
    """What runs as this rank, and its last `lines` lines."""
    said = record(asked["folder"], asked["rank"])
    if said is None:
        return {"rank": None}
    members = procs.family(said["guard"])
    head = members.get(said.get("pid", -1))
    until = time.monotonic() + NOTED
    while head is None and said["ended"] is None and time.monotonic() < until:
        if said["guard"]["pid"] not in members:
            break
        # It ended just now: its guard is about to note how.
        time.sleep(procs.TICK)
        said = record(asked["folder"], asked["rank"]) or said
        members = procs.family(said["guard"])
    found: dict[str, Any] = {
        "rank": said,
        "alive": head is not None,
        "frozen": head is not None and head.state in "Tt",
        "processes": len(members),
        "starts": starts(asked["folder"], asked["rank"]),
        "lines": last_lines(said["log"], asked["lines"]),
        "health": None,
        "progress": None,
    }
    if head is not None and said["port"]:
        found.update(net.health(said["host"], said["port"]))
    return found


def sweep(said: dict[str, Any]) -> None:
    """Remove what a rank whose processes are gone has left."""
    procs.unlink(said["shared"])
    shutil.rmtree(said["temporary"], ignore_errors=True)


def place(folder: str, rank: int) -> str:
    return os.path.join(folder, "run", f"rank-{rank}.json")


def record(folder: str, rank: int) -> dict[str, Any] | None:
    try:
        with open(place(folder, rank), encoding="utf-8") as file:
            found: dict[str, Any] = json.load(file)
            return found
    except (OSError, ValueError):
        return None


def write(folder: str, said: dict[str, Any]) -> None:
    path = place(folder, said["rank"])
    beside = f"{path}.{os.getpid()}"
    with open(beside, "w", encoding="utf-8") as file:
        json.dump(said, file)
    os.replace(beside, path)


def starts(folder: str, rank: int) -> int:
    try:
        with open(os.path.join(folder, "run", f"rank-{rank}.starts"), encoding="utf-8") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


def count(folder: str, rank: int) -> None:
    number = starts(folder, rank) + 1
    with open(os.path.join(folder, "run", f"rank-{rank}.starts"), "w", encoding="utf-8") as file:
        file.write(str(number))


def prune(logs: str) -> None:
    for name in sorted(os.listdir(logs))[:-KEPT]:
        shutil.rmtree(os.path.join(logs, name), ignore_errors=True)
