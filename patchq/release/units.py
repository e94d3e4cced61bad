"""systemd units of the user: one template, an instance a cluster (`patchq@sparks`)."""

from __future__ import annotations

import os
from pathlib import Path

from patchq.cluster.shell import local
from patchq.errors import PatchqError
from patchq.gitstore import files

NAME = "patchq@.service"
RUNS = Path("/run/systemd/system")
"""There where systemd is the init system (sd_booted(3))."""
_TEMPLATE = Path(__file__).with_name(NAME)


def folder() -> Path:
    """Where units of the user are (systemd.unit(5))."""
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(base) / "systemd" / "user"


def text(program: str) -> str:
    """The unit that starts and stops by the patchq at `program`, absolute.

    Raises PatchqError for a path that a unit cannot name.
    """
    if (
        not program.startswith("/")
        or not program.isprintable()
        or any(c in program for c in ' "\\')
    ):
        raise PatchqError(
            f"systemd units cannot name {program!r}", "set PATCHQ_HOME to a folder without blanks"
        )
    # A percent sign begins a specifier there.
    return _TEMPLATE.read_text(encoding="utf-8").replace("@PATCHQ@", program.replace("%", "%%"))


def write(program: str) -> Path | None:
    """Write the unit where systemd runs; None elsewhere. Nothing is enabled or started."""
    if not RUNS.is_dir():
        return None
    path = folder() / NAME
    files.write(path, text(program).encode())
    _reload()
    return path


def remove() -> Path | None:
    """Stop, disable and remove it; None where there is none."""
    path = folder() / NAME
    if not path.is_file():
        return None
    if RUNS.is_dir():
        local().run(["systemctl", "--user", "disable", "--now", "patchq@*"])
    for wanted in folder().glob("*.wants/patchq@*.service"):
        wanted.unlink()
    path.unlink()
    _reload()
    return path


def _reload() -> None:
    if RUNS.is_dir():
        local().run(["systemctl", "--user", "daemon-reload"])
