"""The user's editor on a patch's header; what was typed is never lost."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from patchq.carry.exchange import explained
from patchq.config import Project
from patchq.errors import PatchqError
from patchq.paths import lossless, show
from patchq.queue.header import Header
from patchq.queue.patch import Patch
from patchq.work.edit import as_text, from_text

DEFAULT = "vi"


@dataclass(frozen=True)
class Typed:
    """A header as it was typed for `patch`, and the file that it stands in."""

    patch: Patch
    path: Path
    header: Header


def typed(project: Project, patch: Patch) -> Typed:
    """Ask for the header in $VISUAL or $EDITOR. Nothing is locked meanwhile.

    Raises PatchqError where the editor fails, is killed, or leaves no header; the file with what
    was typed stays, and the error names it.
    """
    path = _draft(project, patch)
    with _kept(path, patch.name, _text(patch)):
        _run(path)
        return Typed(patch, path, read(path))


def read(path: Path) -> Header:
    """The header that stands in a file. Raises PatchqError where it is none."""
    try:
        return from_text(lossless(path.read_bytes()), path.name)
    except OSError as error:
        raise PatchqError(f"{path} cannot be read: {error.strerror}", "name a text file") from error


@contextmanager
def keeping(value: Typed) -> Iterator[None]:
    """Work with what was typed: an error names its file, which stays until `discard`."""
    with _kept(value.path, value.patch.name, _text(value.patch)):
        yield


def discard(value: Typed) -> None:
    """What was typed is recorded: its file goes."""
    value.path.unlink(missing_ok=True)


def _draft(project: Project, patch: Patch) -> Path:
    folder = project.private / "edit"
    with explained("nothing was changed"):
        folder.mkdir(parents=True, exist_ok=True)
        count = 1
        while (path := folder / f"{patch.name}{f'.{count}' if count > 1 else ''}.txt").exists():
            count += 1
        path.write_bytes(_text(patch))
    return path


def _text(patch: Patch) -> bytes:
    return as_text(patch.header).encode("utf-8", "surrogateescape")


@contextmanager
def _kept(path: Path, name: str, original: bytes) -> Iterator[None]:
    try:
        yield
    except PatchqError as error:
        if path.is_file() and path.read_bytes() == original:
            path.unlink()
            raise
        again = f"what you typed is in {path}: `patchq edit {name} --file {path}` takes it"
        hint = f"{error.hint}; {again}" if error.hint else again
        raise PatchqError(error.message, hint, exit_code=error.exit_code) from error


def _run(path: Path) -> None:
    line = os.environ.get("VISUAL") or os.environ.get("EDITOR") or DEFAULT
    if line == DEFAULT and not os.isatty(0):
        raise PatchqError("no editor is set", "set EDITOR, or use --subject, --message and --set")
    try:
        command = shlex.split(line)
    except ValueError as error:
        raise PatchqError(
            f"the editor {show(line)!r} is no command: {error}", "set EDITOR"
        ) from None
    try:
        process = subprocess.Popen([*command, str(path)])
    except (OSError, IndexError) as error:
        raise PatchqError(
            f"the editor {show(line)!r} does not start: {error}",
            "set EDITOR, or use --subject, --message and --set",
        ) from error
    # A Ctrl-C is the editor's.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        code = process.wait()
    finally:
        signal.signal(signal.SIGINT, before)
    if code != 0:
        how = f"was killed (signal {-code})" if code < 0 else f"ended with {code}"
        raise PatchqError(f"the editor {show(line)!r} {how}; nothing was changed")
