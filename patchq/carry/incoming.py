"""Patches outside: files, mboxes, quilt folders, each read as a header and a diff."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from patchq.errors import PatchqError
from patchq.paths import show
from patchq.queue import mail
from patchq.queue import patch as patches
from patchq.queue.mail import Brought


@dataclass(frozen=True)
class Source:
    """One patch to bring in, how to call it in messages, and the -p levels to try.

    `three_way`: the contents it was made on are at hand (a commit's are), so it may be merged.
    `commit` is its id.
    """

    brought: Brought
    label: str
    levels: tuple[int, ...] = (1, 0)
    three_way: bool = False
    commit: str = ""


def from_files(paths: Sequence[Path]) -> list[Source]:
    """Patch files and mboxes.

    Raises PatchqError for a file that cannot be read or holds no diff.
    """
    sources: list[Source] = []
    for path in paths:
        found = mail.read(_read(path), path.name)
        sources += [Source(_named(each, path.stem, len(found)), path.name) for each in found]
    return sources


def _named(brought: Brought, stem: str, count: int) -> Brought:
    """A single nameless patch is called like its file."""
    if brought.name or count > 1:
        return brought
    plain = re.sub(r"^\d+[-_.]", "", stem)
    return Brought(brought.header, brought.diff, patches.slug(plain), brought.left_out)


def from_quilt(folder: Path) -> list[Source]:
    """A quilt directory: the patches that its `series` file names, with their -p options."""
    listed = _read(folder / "series").decode("utf-8", "surrogateescape")
    sources: list[Source] = []
    for number, raw in enumerate(listed.splitlines(), 1):
        line = raw.partition("#")[0].split()
        if not line:
            continue
        path = folder / line[0]
        if not path.resolve().is_relative_to(folder.resolve()):
            raise PatchqError(
                f"{folder}/series:{number} names {show(line[0])}, outside the folder",
                "correct the series file",
            )
        found = re.fullmatch(r"-p(?:(\d+)|ab)", line[1]) if len(line) > 1 else None
        levels = (int(found[1]),) if found and found[1] else (1,)
        (brought,) = mail.read(_read(path), path.name)[:1]
        sources.append(Source(_named(brought, path.stem, 1), path.name, levels))
    return sources


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise PatchqError(
            f"{path} cannot be read: {error.strerror}", "name an existing file or folder"
        ) from error
