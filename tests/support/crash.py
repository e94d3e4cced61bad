"""Kill a program before every single thing that it does to the file system, and see what is left.

A run is *armed* with a number n: it counts its effects (files opened for writing, writes, renames,
links, removals, folders, modes, processes started, the exchange of two folders) and dies by
SIGKILL, with all its children, in place of the n-th; armed with a text, in place of the first
effect whose name starts with it ("os.rename /from /to"). `every_step` does that for n = 1, 2, ...
until the program comes to its end, and has the state judged after each death.

Two ways to run: `forked` calls a function in a fork of this process (a few milliseconds), and
`started` runs a console entry point (`package.module:function` and its arguments) in a fresh
interpreter. The effects of child processes that are not Python are seen as one: their start.

This file is also the program that `started` starts; it imports the standard library only.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

Step = int | str

NEVER = 0
"""Armed with this, a run only lists its effects."""

_EFFECTS = frozenset(
    {
        "os.chmod",
        "os.chown",
        "os.fork",
        "os.link",
        "os.mkdir",
        "os.posix_spawn",
        "os.remove",
        "os.rename",
        "os.rmdir",
        "os.symlink",
        "os.truncate",
        "os.utime",
        "patchq.exchange",
        "subprocess.Popen",
    }
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass(frozen=True)
class Run:
    """One armed run: `killed` before effect `step`, or ended with `code` and `output`.

    `effects` names what it did, or was about to do when it was killed, in order.
    """

    step: Step
    killed: bool
    code: int
    effects: tuple[str, ...]
    output: str = ""

    def __str__(self) -> str:
        last = self.effects[-1] if self.effects else "nothing"
        fate = f"killed before effect {self.step}, {last}" if self.killed else f"exit {self.code}"
        return f"{fate}\n{self.output}".rstrip()


def every_step(
    run: Callable[[int], Run],
    check: Callable[[Run], None],
    *,
    prepare: Callable[[], object] = lambda: None,
    steps: Iterable[int] | None = None,
    limit: int = 100_000,
) -> int:
    """Prepare, run armed with n, check; for n = 1, 2, ... until a run ends by itself.

    The run that ends is checked too. `steps`: only these n (take some of `len(run(NEVER).effects)`
    where all would take too long). Returns how many runs were killed.
    """
    killed = 0
    for step in range(1, limit) if steps is None else steps:
        prepare()
        done = run(step)
        try:
            check(done)
        except AssertionError as error:
            error.add_note(f"run: {done}")
            raise
        if not done.killed:
            return killed
        killed += 1
    if steps is None:
        raise AssertionError(f"still not at its end after {limit} effects")
    return killed


def forked(action: Callable[[], object], step: Step, *, under: Path | None = None) -> Run:
    """Call `action` in a fork of this process; only effects below `under` count.

    What `action` raises ends the run with code 70 and the traceback as output.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _in_fork(action, step, under, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    effects, _, output = told.decode("utf-8", "replace").partition("\0")
    return _run(step, os.waitstatus_to_exitcode(status), effects, output)


def _in_fork(
    action: Callable[[], object], step: Step, under: Path | None, writing: int
) -> NoReturn:
    code = 0
    try:
        os.setsid()
        arm(step, writing, under)
        action()
    except BaseException:
        code = 70
        _tell(writing, "\0" + traceback.format_exc())
    os._exit(code)


def started(
    entry: str,
    args: Sequence[str],
    step: Step,
    *,
    cwd: Path,
    env: dict[str, str] | None = None,
    under: Path | None = None,
) -> Run:
    """Run the console entry point `entry` ("package.module:function") in a fresh interpreter."""
    reading, writing = os.pipe()
    argv = [sys.executable, "-B", __file__, str(step), str(writing), str(under or ""), entry, *args]
    with (
        subprocess.Popen(
            argv,
            cwd=cwd,
            env=env,
            pass_fds=[writing],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process,
        os.fdopen(reading, "rb") as pipe,
    ):
        os.close(writing)
        # The effects come to an end with the process; its output waits in the other pipe's buffer
        # unless it is long, so both are read at once.
        from threading import Thread

        told: list[bytes] = []
        reader = Thread(target=lambda: told.append(pipe.read()))
        reader.start()
        output, _ = process.communicate()
        reader.join()
    effects = told[0].decode("utf-8", "replace")
    return _run(step, process.returncode, effects, output.decode("utf-8", "replace"))


def _run(step: Step, code: int, effects: str, output: str) -> Run:
    killed = code == -signal.SIGKILL
    return Run(step, killed, code, tuple(effects.splitlines()), output)


def arm(step: Step, report: int, under: Path | None = None) -> None:
    """Count this process's effects from now on, name each on the descriptor `report`, and die.

    A write is counted too where it goes through `os.write`: killed there, half of it is done.
    """
    count = 0
    prefix = str(under) + os.sep if under is not None else ""
    inside = False
    write = os.write

    def effect(name: str, paths: Iterable[object], half: Callable[[], object] | None) -> None:
        nonlocal count, inside
        shown = [os.path.abspath(p) for p in map(_text, paths) if p]
        if inside or (prefix and shown and not any((p + os.sep).startswith(prefix) for p in shown)):
            return
        count += 1
        inside = True
        told = f"{name} {' '.join(shown)}".replace("\n", "?")
        _tell(report, told + "\n", write)
        if count == step or (isinstance(step, str) and told.startswith(step)):
            if half is not None:
                half()
            _die()
        inside = False

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event in _EFFECTS:
            effect(event, args[:2] if event != "subprocess.Popen" else (), None)
        elif event == "open" and not isinstance(args[0], int):
            mode, flags = args[1], args[2]
            writing = bool(isinstance(flags, int) and flags & _WRITING)
            writing = writing or (isinstance(mode, str) and bool(set(mode) & set("wax+")))
            if writing and _text(args[0]) not in ("/dev/null", "/dev/tty"):
                effect(event, args[:1], None)

    def counted_write(handle: int, data: Any) -> int:
        name = _regular_file(handle)
        if name:
            effect("os.write", [name], lambda: write(handle, bytes(data)[: len(data) // 2]))
        return write(handle, data)

    os.write = counted_write
    sys.addaudithook(hook)


def _regular_file(handle: int) -> str:
    """The name of an open regular file (Linux tells it); an empty text for anything else."""
    try:
        name = os.readlink(f"/proc/self/fd/{handle}")
    except OSError:
        return ""
    return name if name.startswith("/") and not name.startswith("/dev/") else ""


def _text(path: object) -> str:
    if isinstance(path, int) or path is None:
        return ""
    return os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else ""


def _tell(report: int, text: str, write: Callable[[int, bytes], int] = os.write) -> None:
    data = text.encode("utf-8", "replace")
    while data:
        data = data[write(report, data) :]


def _die() -> NoReturn:
    if os.getpgid(0) == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("alive after SIGKILL")


def main() -> None:
    """STEP DESCRIPTOR UNDER ENTRY ARGS...: what `started` starts."""
    step, report, under, entry, *args = sys.argv[1:]
    # The folder of this file is not the program's: its modules must not hide others.
    sys.path[0] = os.getcwd()
    module, _, name = entry.partition(":")
    function = getattr(importlib.import_module(module), name)
    sys.argv = [name, *args]
    arm(int(step) if step.isdecimal() else step, int(report), Path(under) if under else None)
    sys.exit(function())


if __name__ == "__main__":
    main()
