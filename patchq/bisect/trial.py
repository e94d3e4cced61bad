"""Run programs for a bisection: the user's CMD and patchq's own commands, bounded in time, each in
a process group of its own that ends with us.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from patchq import child
from patchq.bisect.session import Asked
from patchq.errors import PatchqError
from patchq.paths import show

Outcome = Literal["good", "bad", "skip", "late"]

GRACE = 30.0
"""Seconds from SIGINT to SIGKILL."""
PATCHQ = (sys.executable, "-P", "-m", "patchq.cli.main")
"""This very patchq; the project's folder may hold another one, which is not looked for (-P)."""
_OURS = re.compile(r"(--[a-z-]+=)?\$(?:\{(PATCHQ_[A-Z_]+)\}|(PATCHQ_[A-Z_]+))")
_ABORT = 128


def words(command: str) -> list[str]:
    """CMD as words. Raises PatchqError where it cannot be read, or its program is not there."""
    try:
        found = shlex.split(command)
    except ValueError as error:
        raise PatchqError(f"--run cannot be read: {error}", "quote it as for a shell") from error
    if not found:
        raise PatchqError("--run is empty", "name the command that shows the fault")
    if found[0] == "patchq":
        return [*PATCHQ, *found[1:]]
    if "/" not in found[0] and shutil.which(found[0]) is None:
        raise PatchqError(f"there is no program {show(found[0])!r}", "correct --run")
    if found[0].startswith(("./", "../")):
        found[0] = os.path.abspath(found[0])
    return found


def filled(word: str, env: Mapping[str, str]) -> str:
    """A word that is `$PATCHQ_...` or `--option=$PATCHQ_...`, with its value: there is no shell."""
    found = _OURS.fullmatch(word)
    return (found[1] or "") + env.get(found[2] or found[3], "") if found else word


def outcome(code: int | None, asked: Asked) -> Outcome:
    """What an exit status says; None: it did not end. Raises PatchqError where CMD was killed, or
    asks to stop."""
    if code is None:
        return "bad" if asked.hang_is_bad else "late"
    if code == 0:
        return "good"
    if code in asked.skip_codes:
        return "skip"
    if 0 < code < _ABORT:
        return "bad"
    raise PatchqError(
        f"the command ended by signal {-code}" if code < 0 else f"the command gave status {code}",
        "the bisection is kept; run it again to go on",
    )


def bounded(
    argv: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    log: Path,
    limit: float,
    out: Path | None = None,
) -> int | None:
    """Run `argv` in a process group of its own: its exit status (-N: signal N), None where it did
    not end within `limit` seconds.

    stdout and stderr go to `log`, stdout to `out` where that is given. Whatever ends the wait, its
    whole group has ended then. Raises PatchqError where it cannot be run.
    """
    with log.open("wb") as told, (out or Path(os.devnull)).open("wb") as printed:
        try:
            process = subprocess.Popen(
                list(argv),
                cwd=cwd,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=told if out is None else printed,
                stderr=told if out is not None else subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=child.follows_us(),  # noqa: PLW1509
            )
        except OSError as error:
            raise PatchqError(
                f"{show(argv[0])} cannot be run: {error.strerror or error}", "correct --run"
            ) from error
        late = True
        try:
            late = not child.ended(process, limit)
        finally:
            child.end(process, GRACE)
        return None if late else process.returncode
