"""patchq itself at the user's: private environments below `tools/`, and one command on the PATH.

install.sh makes `tools/KEY` and runs the installation by it; only when that is done, `current` and
the command lead there.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from patchq.release import installed

COMMAND = Path(".local/bin/patchq")
"""Below the user's home, where systemd's file-hierarchy(7) has the user's commands."""


def settle() -> tuple[Path, Path | None]:
    """Let `current` and the command lead to the patchq that runs.

    Gives its program, and the command where the PATH does not lead to it. A patchq that is not one
    of ours is left alone.
    """
    tools = installed.home() / "tools"
    mine = Path(sys.prefix)
    if mine.parent != tools:
        return mine / "bin" / "patchq", None
    _link(tools / "current", mine.name)
    command = Path.home() / COMMAND
    program = tools / "current" / "bin" / "patchq"
    if not os.path.lexists(command) or _is_ours(command):
        command.parent.mkdir(parents=True, exist_ok=True)
        _link(command, str(program))
    else:
        command = program  # another patchq has its place
    for other in tools.iterdir():
        if other.is_dir() and not other.is_symlink() and other != mine:
            shutil.rmtree(other, ignore_errors=True)
    found = shutil.which("patchq")
    reached = found is not None and os.path.realpath(found) == os.path.realpath(command)
    return program, None if reached else command


def remove() -> None:
    """Remove the command, if it is ours."""
    command = Path.home() / COMMAND
    if _is_ours(command):
        command.unlink()


def _is_ours(command: Path) -> bool:
    return command.is_symlink() and str(command.readlink()).startswith(f"{installed.home()}/")


def _link(path: Path, target: str) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.unlink(missing_ok=True)
    beside.symlink_to(target)
    beside.replace(path)
