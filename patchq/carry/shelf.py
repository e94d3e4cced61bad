"""The journal's entries on disk: where they stand, how one is written and read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from patchq.carry import exchange
from patchq.config import Project
from patchq.errors import PatchqError

KEEP = 200
"""Entries that the journal holds; older ones go."""
SCHEMA = "patchq.journal/1"


@dataclass(frozen=True)
class Change:
    """One file of an entry; sha256 None: it does not exist."""

    path: str
    old_sha256: str | None
    new_sha256: str | None


@dataclass(frozen=True)
class Entry:
    """One recorded change. `undone_by` and `undoes` are ids of entries; `at` is UTC."""

    id: int
    command: str
    summary: str
    at: datetime
    changes: tuple[Change, ...]
    undone_by: int | None = None
    undoes: int | None = None


def write(
    folder: Path, header: dict[str, Any], bodies: Mapping[str, bytes], details: bytes
) -> None:
    """Write the contents, then `entry.json`, which tells that they are all there."""
    content, places = exchange.pack(bodies)
    text = json.dumps({"schema": SCHEMA, **header, "content": places}, indent=1)
    files = {"bytes": content, "details": details, "entry.json.new": text.encode("ascii")}
    for name, data in files.items():
        exchange.write_new(folder / name, data)
    exchange.sync(folder / name for name in files)
    (folder / "entry.json.new").rename(folder / "entry.json")
    exchange.sync([folder, folder.parent])


def header_of(folder: Path) -> dict[str, Any] | None:
    """What `entry.json` says; None where the folder holds none."""
    try:
        data = json.loads((folder / "entry.json").read_bytes())
        if data["schema"] == SCHEMA:
            return dict(data)
        reason: object = data["schema"]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError) as error:
        reason = error
    raise PatchqError(
        f"{folder / 'entry.json'} is damaged or of another patchq: {reason}",
        f"move {folder} away to go on without it",
    )


def reader(folder: Path, header: dict[str, Any]) -> Callable[[str], bytes]:
    return lambda key: exchange.unpack(folder / "bytes", header["content"], key)


def entry_of(header: dict[str, Any], undone_by: int | None) -> Entry:
    return Entry(
        header["id"],
        header["command"],
        header["summary"],
        datetime.fromisoformat(header["at"]),
        tuple(Change(c["path"], c["old"], c["new"]) for c in header["changes"]),
        undone_by,
        header["undoes"],
    )


def forget(folder: Path) -> None:
    """Remove an entry, what tells that it is one first."""
    exchange.remove_file(folder / "entry.json")
    exchange.remove_tree(folder)


def unfinished_folder(project: Project) -> Path:
    return project.private / "journal" / "unfinished"


def folder_of(project: Project, number: int) -> Path:
    return project.private / "journal" / f"{number:06}"


def numbers(project: Project) -> list[int]:
    try:
        return sorted(
            int(n) for n in os.listdir(unfinished_folder(project).parent) if n.isdecimal()
        )
    except FileNotFoundError:
        return []


def next_number(project: Project) -> int:
    return max(numbers(project), default=0) + 1


def root_name(project: Project) -> str:
    """The project's folder as seen from its git directory: holds when both are moved."""
    return os.path.relpath(project.root, project.git_dir)


def now() -> datetime:
    """UTC, in whole seconds; SOURCE_DATE_EPOCH sets it."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    if fixed.isdecimal():
        return datetime.fromtimestamp(int(fixed), UTC)
    return datetime.now(UTC).replace(microsecond=0)
