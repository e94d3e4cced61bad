"""What people changed in a working tree, and where that stands in the way of a switch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from patchq.errors import PatchqError
from patchq.gitstore.files import NONE, Files, parents
from patchq.gitstore.store import Change
from patchq.paths import named


class Blocked(PatchqError):
    """Edits stand where other files would be written; nothing was touched. `paths` names them."""

    def __init__(self, paths: Sequence[bytes], folder: Path) -> None:
        self.paths = tuple(paths)
        super().__init__(
            f"{named(self.paths)} in {folder} {'has' if len(paths) == 1 else 'have'} edits of yours"
            " that this would overwrite",
            "take them into a patch with `patchq refresh`, or put them away with `git stash` there",
        )


@dataclass(frozen=True)
class Edit:
    """One path that is not as the tree has it."""

    path: bytes
    kind: Literal["modified", "added", "deleted"]


def in_the_way(files: Files, changes: Sequence[Change], edits: Mapping[bytes, Edit]) -> list[bytes]:
    """The edits that `changes` would overwrite; one that is the new content already is none."""
    if not edits:
        return []
    by_path = {change.path: change for change in changes}
    # A file may want the place of a folder with edits, and a folder that of an edited file.
    coming = {path for path, change in by_path.items() if change.new_oid != NONE}
    above = {parent for path in coming for parent in parents(path)}
    found = []
    for path, edit in edits.items():
        change = by_path.get(path)
        if change is not None:
            if not files.holds(path, change.new_mode, change.new_oid):
                found.append(path)
        elif edit.kind != "deleted" and (
            path.rstrip(b"/") in above or any(p in coming for p in parents(path))
        ):
            found.append(path)
    return found
