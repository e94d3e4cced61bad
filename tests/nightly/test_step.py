"""One command: bounded, in a group of its own, ended as by Ctrl-C, and nothing left of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from patchq.errors import PatchqError
from patchq.nightly import step
from patchq.nightly.step import Ended
from tests.nightly.conftest import gone, soon

CLEANS = """
import sys, time
try:
    print("begun", flush=True)
    sys.stderr.write("working\\n"); sys.stderr.flush()
    time.sleep(60)
except KeyboardInterrupt:
    open("cleaned", "w").close()
    sys.exit(130)
"""
DEAF = """
import signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "60"])
print(child.pid, flush=True)
time.sleep(60)
"""


class Steps:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.told: list[str] = []

    def run(self, program: str, *args: str, limit: float = 30, **more: Any) -> Ended:
        return step.run(
            [sys.executable, "-c", program, *args],
            cwd=self.folder,
            out=self.folder / "out",
            log=self.folder / "log",
            busy=self.folder / "busy",
            limit=limit,
            tell=self.told.append,
            **{"grace": 5.0, **more},
        )

    @property
    def out(self) -> str:
        return (self.folder / "out").read_text()

    @property
    def log(self) -> bytes:
        return (self.folder / "log").read_bytes()


@pytest.fixture
def steps(tmp_path: Path) -> Steps:
    return Steps(tmp_path)


def test_streams_and_status_are_kept(steps: Steps) -> None:
    ended = steps.run("import sys; print('{}'); sys.stderr.write('a\\nb\\n'); sys.exit(5)")
    assert (ended.code, ended.late) == (5, False)
    assert (steps.out, steps.log) == ("{}\n", b"a\nb\n")
    assert steps.told == ["a", "b"]


def test_it_has_the_environment_that_it_is_given(steps: Steps) -> None:
    steps.run("import os; print(sorted(os.environ))", env={"ONLY": "this"})
    assert "ONLY" in steps.out
    assert "HOME" not in steps.out


def test_at_its_limit_it_is_told_to_end_and_cleans_up(steps: Steps) -> None:
    ended = steps.run(CLEANS, limit=2)
    assert (ended.code, ended.late) == (130, True)
    assert (steps.folder / "cleaned").exists()


def test_what_does_not_listen_is_killed_with_all_its_children(steps: Steps) -> None:
    ended = steps.run(DEAF, limit=1, grace=0.3)
    assert (ended.code, ended.late) == (-signal.SIGKILL, True)
    soon(lambda: gone(int(steps.out)))


def test_what_a_command_leaves_behind_is_killed(steps: Steps) -> None:
    leaves = "import subprocess; print(subprocess.Popen(['sleep', '60']).pid, flush=True)"
    began = time.monotonic()
    assert steps.run(leaves).code == 0
    assert time.monotonic() - began < 20
    soon(lambda: gone(int(steps.out)))


def test_an_interruption_goes_to_the_command_and_comes_back(steps: Steps) -> None:
    def interrupt() -> None:
        soon(lambda: (steps.folder / "log").exists() and steps.log)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        steps.run(CLEANS)
    thread.join()
    assert (steps.folder / "cleaned").exists()


def test_an_ignored_interruption_is_not_inherited(steps: Steps) -> None:
    """A shell that starts a night in the background lets it ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        ended = steps.run(CLEANS, limit=2)
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.code == 130


NIGHT = """
import sys
from pathlib import Path
from patchq.nightly import step
folder = Path(sys.argv[1])
step.run([sys.executable, "-c", sys.argv[2]], cwd=folder, out=folder / "out", log=folder / "log",
         busy=folder / "busy", limit=60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of it")
def test_a_killed_night_takes_its_command_with_it(steps: Steps) -> None:
    night = subprocess.Popen([sys.executable, "-c", NIGHT, str(steps.folder), CLEANS])
    soon(lambda: (steps.folder / "log").exists() and steps.log)
    night.kill()
    night.wait()
    soon((steps.folder / "cleaned").exists)


def test_the_next_night_waits_for_what_is_left_and_ends_it_at_last(steps: Steps) -> None:
    night = subprocess.Popen([sys.executable, "-c", NIGHT, str(steps.folder), DEAF])
    soon(lambda: (steps.folder / "out").exists() and steps.out)
    night.kill()
    night.wait()
    left = int((steps.folder / "busy").read_text())
    assert not gone(left)
    began = time.monotonic()
    assert steps.run("print('next')", grace=0.5).code == 0
    assert time.monotonic() - began >= 0.5, "it had its time"
    soon(lambda: gone(left))


def test_a_long_log_keeps_its_beginning_and_its_end(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step, "MOST", 3000)
    monkeypatch.setattr(step, "TAIL", 1000)
    steps.run("import sys\nfor n in range(2000): sys.stderr.write(f'line {n}\\n')")
    lines = steps.log.decode().splitlines()
    assert lines[0] == "line 0"
    assert lines[-1] == "line 1999"
    assert any("bytes are left out" in line for line in lines)
    assert len(steps.log) < 3100


def test_a_log_without_line_ends_is_bounded_too(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step, "MOST", 200_000)
    monkeypatch.setattr(step, "TAIL", 100_000)
    steps.run("import sys; sys.stderr.write('x' * 2_000_000)")
    assert len(steps.log) < 210_000


def test_a_program_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("out", "log", "busy")}
    with pytest.raises(PatchqError, match="cannot be run"):
        step.run(["/no/such/program"], cwd=tmp_path, limit=1, **files)
