"""Run what patches bring: each `Patchq-Check`, in the patched tree.

Imported text never becomes a command. A check runs where its very line stands in the committed
series, or was confirmed here (`patchq check --confirm`).
"""

from __future__ import annotations

import hashlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from patchq.carry.report import Check
from patchq.config import Project
from patchq.gitstore.checkout import check_out
from patchq.gitstore.store import Store
from patchq.paths import show
from patchq.progress import SILENT, Progress
from patchq.queue import header as headers
from patchq.queue.patch import Patch

LIMIT = 600.0
"""Seconds that one check may take."""
TAIL = 400
"""Characters of a failed check's output that are reported."""


def runner(
    project: Project, series_folder: str, progress: Progress = SILENT
) -> Callable[[Store, str, Sequence[Patch]], list[Check]]:
    """What `prove` calls to run the checks of the queue in `series_folder`."""

    def run(store: Store, tree: str, series: Sequence[Patch]) -> list[Check]:
        wanted = [(patch, line) for patch in series for line in patch.header.checks]
        if not wanted:
            return []
        trusted = _trusted(project, series_folder, [patch for patch, _ in wanted])
        with tempfile.TemporaryDirectory(prefix="patchq-tree-") as folder:
            progress.step("proving: writing the patched tree")
            check_out(store, tree, Path(folder))
            found = []
            for place, (patch, line) in enumerate(wanted):
                progress.step("proving: checks", place, len(wanted), "checks")
                if (patch.name, line) not in trusted:
                    found.append(_unconfirmed(patch, line))
                else:
                    found.append(_run(patch, line, Path(folder)))
            return found

    return run


def without(
    project: Project, series_folder: str, progress: Progress = SILENT
) -> Callable[[Store, str, Patch], list[Check]]:
    """Runs the checks of one patch in a tree without it; those that may not run are left out.

    For what upstream has of it: a check that passes there is evidence that the patch can go.
    """

    def run(store: Store, tree: str, patch: Patch) -> list[Check]:
        trusted = _trusted(project, series_folder, [patch]) if patch.header.checks else frozenset()
        lines = [line for line in patch.header.checks if (patch.name, line) in trusted]
        if not lines:
            return []
        with tempfile.TemporaryDirectory(prefix="patchq-tree-") as folder:
            progress.step(f"running the checks of {patch.name} without it")
            check_out(store, tree, Path(folder))
            return [_run(patch, line, Path(folder)) for line in lines]

    return run


def confirm(project: Project, series: Sequence[Patch]) -> list[tuple[str, str]]:
    """Remember every check of `series` as one that may run here; the (name, line) pairs."""
    pairs = [(patch.name, line) for patch in series for line in patch.header.checks]
    project.private.mkdir(parents=True, exist_ok=True)
    known = _confirmed(project)
    with _confirmed_file(project).open("a", encoding="utf-8") as file:
        for name, line in pairs:
            if (digest := _digest(name, line)) not in known:
                file.write(f"{digest} {name}\n")
    return pairs


def _trusted(
    project: Project, series_folder: str, series: Sequence[Patch]
) -> frozenset[tuple[str, str]]:
    from patchq.gitstore.project import committed

    known = _confirmed(project)
    trusted: set[tuple[str, str]] = set()
    for patch in {patch.name: patch for patch in series}.values():
        lines = set(patch.header.checks)
        data = committed(project.root, f"{series_folder}/{patch.file}")
        if data is not None:
            header, _ = headers.parse(data, patch.file)
            trusted |= {(patch.name, line) for line in lines & set(header.checks)}
        trusted |= {(patch.name, line) for line in lines if _digest(patch.name, line) in known}
    return frozenset(trusted)


def _confirmed_file(project: Project) -> Path:
    return project.private / "confirmed-checks"


def _confirmed(project: Project) -> frozenset[str]:
    try:
        lines = _confirmed_file(project).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return frozenset()
    return frozenset(line.partition(" ")[0] for line in lines)


def _digest(name: str, line: str) -> str:
    return hashlib.sha256(f"{name}\0{line}".encode("utf-8", "surrogateescape")).hexdigest()


def _unconfirmed(patch: Patch, line: str) -> Check:
    return Check(
        _name(patch),
        False,
        f"not run: {show(line)!r} is neither committed here nor confirmed"
        " (commit the patch, or `patchq check --confirm`)",
    )


def _name(patch: Patch) -> str:
    return f"check of {patch.name}"


def _run(patch: Patch, line: str, folder: Path) -> Check:
    try:
        command = shlex.split(line)
    except ValueError as error:
        return Check(_name(patch), False, f"{show(line)!r} cannot be read as a command: {error}")
    if not command:
        return Check(_name(patch), False, "the check is empty")
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    for secret in ("GITHUB_TOKEN", "GH_TOKEN"):
        env.pop(secret, None)
    # `python3` in a check is the Python that patchq runs on.
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env.get("PATH", "")])
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=env,
            start_new_session=True,
        )
    except OSError as error:
        return Check(_name(patch), False, f"{show(command[0])!r} does not start: {error.strerror}")
    try:
        out, _ = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return Check(_name(patch), False, f"{show(line)!r} took more than {LIMIT:.0f} s")
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    if process.returncode == 0:
        return Check(_name(patch), True, show(line))
    tail = show(out.decode("utf-8", "replace").strip()[-TAIL:])
    return Check(_name(patch), False, f"{show(line)!r} ends with {process.returncode}: {tail}")
