"""What a change does to each file, worked out before anything is touched."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from patchq.carry.exchange import sha256
from patchq.errors import PatchqError

SERIES = "series"
ROOTS = (SERIES, "upstream", "releases")


@dataclass(frozen=True)
class Step:
    """One file: sha256 and mode before and after; None where it does not exist, or by umask."""

    path: str
    old: str | None
    new: str | None
    old_mode: int | None = None
    new_mode: int | None = None


def plan(
    root: Path, changes: Mapping[str, bytes | None], modes: Mapping[str, int | None]
) -> tuple[tuple[Step, ...], tuple[str, ...], dict[str, bytes]]:
    """The steps that change something, the folders that they add, all contents by sha256.

    Raises PatchqError for a path that is not, or cannot become, a regular file below `ROOTS`.
    """
    steps: list[Step] = []
    made: set[str] = set()
    bodies: dict[str, bytes] = {}
    for path, new in sorted(changes.items()):
        missing = _check(root, path)
        place = root / path
        exists = place.exists()
        old = place.read_bytes() if exists else None
        if old == new:
            continue
        mode = stat.S_IMODE(place.stat().st_mode) if exists else None
        keys = [None if body is None else sha256(body) for body in (old, new)]
        bodies |= {
            key: body
            for key, body in zip(keys, (old, new), strict=True)
            if key and body is not None
        }
        steps.append(Step(path, keys[0], keys[1], mode, modes.get(path, mode)))
        if new is not None and not path.startswith(SERIES + "/"):
            made |= missing
    return tuple(steps), tuple(sorted(made)), bodies


def _check(root: Path, path: str) -> set[str]:
    """The folders on the way to `path` that do not exist."""
    parts = path.split("/")
    if len(parts) < 2 or parts[0] not in ROOTS or {"", ".", ".."} & set(parts) or "\0" in path:
        raise PatchqError(f"{path!r} is not the name of a file below {', '.join(ROOTS)}")
    missing: set[str] = set()
    for end in range(1, len(parts) + 1):
        part = "/".join(parts[:end])
        place, last = root / part, end == len(parts)
        if not os.path.lexists(place):
            missing |= set() if last else {part}
        elif place.is_symlink() or not (place.is_file() if last else place.is_dir()):
            raise PatchqError(
                f"{place} is not a {'regular file' if last else 'folder'}",
                "patchq follows no links there; put one of its own in its place",
            )
    return missing
