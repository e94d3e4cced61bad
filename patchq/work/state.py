"""Where the push/pop tree of a queue stands: `.git/patchq/work/QUEUE/`.

`tree/` holds the files, `git/` the small repository that the user's own git sees there, `root`
names the project (a linked worktree's is elsewhere), and `state.json` what is applied. It is
written before the files are touched, with the tree that they come from: a command that was killed
is completed from it by the next one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from patchq.carry.shelf import root_name
from patchq.config import Project
from patchq.errors import PatchqError
from patchq.queue.patch import Patch

SCHEMA = "patchq.work-state/1"


@dataclass(frozen=True)
class Below:
    """A commit of the store that patches stand on, and its tree."""

    name: str
    commit: str
    tree: str


@dataclass(frozen=True)
class Placed(Below):
    """A patch that is applied: `id` is its content's, `tree` the one with it."""

    number: int
    id: str


@dataclass(frozen=True)
class Pending:
    """A patch whose push conflicted. `tree` is the one that was laid out, with markers."""

    name: str
    number: int
    id: str
    tree: str
    paths: tuple[str, ...]


@dataclass(frozen=True)
class State:
    """`stands`: the tree that the files are of; `origin`: what they come from, during a switch."""

    base: Below
    applied: tuple[Placed, ...] = ()
    pending: Pending | None = None
    stands: str = ""
    origin: str | None = None

    @property
    def top(self) -> Below:
        """The last patch that is applied, or the base."""
        return self.applied[-1] if self.applied else self.base

    @property
    def wanted(self) -> str:
        """The tree that the files should be of."""
        return self.pending.tree if self.pending else self.top.tree


@dataclass(frozen=True)
class Place:
    """The folders of one queue's working tree."""

    folder: Path

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    @property
    def git_dir(self) -> Path:
        return self.folder / "git"

    @property
    def file(self) -> Path:
        return self.folder / "state.json"


def place_of(project: Project, queue: str) -> Place:
    return Place(project.private / "work" / queue)


def content_id(patch: Patch) -> str:
    """What a patch is known by: it changes with any byte of its file."""
    return sha256(patch.text).hexdigest()


def is_of(state: State, base: Below, series: Sequence[Patch]) -> bool:
    """Whether the tree stands on this base and these patches, as they read now."""
    known = [(each.name, each.id) for each in state.applied]
    if state.pending:
        known.append((state.pending.name, state.pending.id))
    return state.base == base and known == [
        (patch.name, content_id(patch)) for patch in series[: len(known)]
    ]


def read(place: Place) -> State | None:
    """The state on disk; None where the queue has no working tree.

    Raises PatchqError where the file is not ours.
    """
    try:
        data = json.loads(place.file.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise _damaged(place, str(error)) from error
    try:
        if data["schema"] != SCHEMA:
            raise _damaged(place, f"its schema is not {SCHEMA}")
        pending = data["pending"]
        if pending is not None:
            pending = Pending(**{**pending, "paths": tuple(pending["paths"])})
        applied = tuple(Placed(**each) for each in data["applied"])
        return State(Below(**data["base"]), applied, pending, data["stands"], data["origin"])
    except (KeyError, TypeError) as error:
        raise _damaged(place, f"a field is missing or unknown ({error})") from error


def write(project: Project, place: Place, state: State) -> None:
    """Write the state at once."""
    place.folder.mkdir(parents=True, exist_ok=True)
    root = os.fsencode(root_name(project)) + b"\n"
    if not (place.folder / "root").is_file() or (place.folder / "root").read_bytes() != root:
        (place.folder / "root").write_bytes(root)
    beside = place.file.with_name("state.json.new")
    data = {
        "schema": SCHEMA,
        "base": vars(state.base),
        "applied": [vars(each) for each in state.applied],
        "pending": vars(state.pending) if state.pending else None,
        "stands": state.stands,
        "origin": state.origin,
    }
    beside.write_text(json.dumps(data), encoding="ascii")
    beside.replace(place.file)


def _damaged(place: Place, why: str) -> PatchqError:
    return PatchqError(
        f"{place.file} is damaged: {why}",
        f"move {place.folder} away (your edits are in its tree/) and push anew",
    )
