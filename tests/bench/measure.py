"""Run one command and say what it cost: wall time, processor time, memory.

Every run gets a home of its own and no git configuration of the machine, so that two machines
measure the same work.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# The peak that wait4 reports survives exec: a child started from a large process begins with that
# process's size. A small process in between keeps the figure honest (its own size is the floor).
_LAUNCHER = """
import json, os, sys, time
fd, args = int(sys.argv[1]), sys.argv[2:]
start = time.perf_counter()
pid = os.posix_spawnp(args[0], args, os.environ)
_, status, use = os.wait4(pid, 0)
wall = time.perf_counter() - start
os.write(fd, json.dumps([os.waitstatus_to_exitcode(status), wall, use.ru_utime + use.ru_stime,
                         use.ru_maxrss]).encode())
"""

_KEPT = ("PATH", "LD_LIBRARY_PATH", "TMPDIR", "SYSTEMROOT")


@dataclass(frozen=True)
class Cost:
    """What one run cost.

    Seconds of wall and processor time (waited-for children included); ``largest`` is the peak
    resident size of the largest single process and ``whole`` the sampled peak of all processes
    together (proportional share of shared pages), both in MB; 0 where not measured.
    """

    code: int
    wall: float
    cpu: float
    largest: float
    whole: float = 0.0
    out: bytes = b""
    err: bytes = b""


def hermetic(home: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of every measured command: nothing of the user's, a fixed identity."""
    home.mkdir(parents=True, exist_ok=True)
    env = {key: os.environ[key] for key in _KEPT if key in os.environ}
    env |= {
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_EDITOR": "true",
        "EDITOR": "true",
        "GIT_AUTHOR_NAME": "Bench",
        "GIT_AUTHOR_EMAIL": "bench@example.invalid",
        "GIT_COMMITTER_NAME": "Bench",
        "GIT_COMMITTER_EMAIL": "bench@example.invalid",
        "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
        "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
        "PYTHONDONTWRITEBYTECODE": "",
        "NO_COLOR": "1",
    }
    return env | dict(extra or {})


def cost(
    args: Sequence[str], *, cwd: Path, env: Mapping[str, str], whole: bool = False, ok: bool = True
) -> Cost:
    """Run `args`; raise `RuntimeError` with the output where it fails and `ok` is set.

    `whole` samples the memory of all processes together every 10 ms, which disturbs the times:
    do not use those of such a run.
    """
    read, write = os.pipe()
    files = cwd.parent / f".out-{os.getpid()}", cwd.parent / f".err-{os.getpid()}"
    try:
        with files[0].open("wb") as out, files[1].open("wb") as err:
            child = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(write), *args],
                cwd=cwd,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                pass_fds=(write,),
            )
            os.close(write)
            peak = _sample(child) if whole else 0.0
            child.wait()
        said = os.read(read, 4096)
        texts = files[0].read_bytes(), files[1].read_bytes()
    finally:
        os.close(read)
        for file in files:
            file.unlink(missing_ok=True)
    if not said:
        raise RuntimeError(f"{args[0]} did not start: {texts[1].decode(errors='replace')}")
    code, wall, cpu, largest = json.loads(said)
    if ok and code:
        tail = (texts[0][-2000:] + texts[1][-4000:]).decode(errors="replace")
        raise RuntimeError(f"{' '.join(args)[:300]} ended with {code}:\n{tail}")
    return Cost(code, wall, cpu, largest / 1024, peak, *texts)


def _sample(child: subprocess.Popen[bytes]) -> float:
    peak = 0
    while child.poll() is None:
        below, todo = [], [child.pid]
        while todo:
            found = _children(todo.pop())
            below += found
            todo += found
        peak = max(peak, sum(_share(pid) for pid in below))
        time.sleep(0.01)
    return peak / 1024


def _children(pid: int) -> list[int]:
    found = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            text = Path(f"/proc/{pid}/task/{task}/children").read_text()
            found += [int(word) for word in text.split()]
    except OSError:
        pass
    return found


def _share(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    except (OSError, ValueError):
        pass
    return 0


def median(costs: Sequence[Cost]) -> Cost:
    """The run in the middle by wall time, with the highest memory of all."""
    middle = statistics.median_low([each.wall for each in costs])
    one = next(each for each in costs if each.wall == middle)
    return Cost(
        one.code,
        one.wall,
        one.cpu,
        max(each.largest for each in costs),
        max(each.whole for each in costs),
        one.out,
        one.err,
    )


def git(*args: str, cwd: Path, env: Mapping[str, str], data: bytes | None = None) -> bytes:
    """Unmeasured git, for preparing and comparing. Raises `RuntimeError` where it fails."""
    done = subprocess.run(["git", *args], cwd=cwd, env=dict(env), input=data, capture_output=True)
    if done.returncode:
        raise RuntimeError(f"git {' '.join(args)[:300]}: {done.stderr.decode(errors='replace')}")
    return done.stdout


def fresh(folder: Path) -> Path:
    """An empty folder at `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def machine(env: Mapping[str, str]) -> dict[str, str]:
    """What a reader needs to judge the figures: processor, memory, versions, date."""
    from datetime import UTC, datetime

    def said(*args: str, mark: str = "") -> str:
        try:
            done = subprocess.run(args, env=dict(env), capture_output=True, text=True)
        except OSError:
            return "missing"
        lines = [line for line in done.stdout.splitlines() if line.startswith(mark)]
        return (lines or ["?"])[0].removeprefix(mark).strip()

    cpu = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    memory = int(Path("/proc/meminfo").read_text().split()[1]) / 1024**2
    return {
        "cores": str(os.cpu_count()),
        "processor": cpu[0] if cpu else "?",
        "memory": f"{memory:.0f} GB",
        "python": sys.version.split()[0],
        "git": said("git", "--version", mark="git version"),
        "quilt": said("quilt", "--version"),
        "stgit": said("stg", "--version", mark="Stacked GIT"),
        "load": f"{os.getloadavg()[0]:.1f}",
        "date": datetime.now(UTC).date().isoformat(),
    }
