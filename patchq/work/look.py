"""What the working tree looks like, for `status`, `series` and `diff`: nothing is changed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from patchq.carry.workspace import Queue, upstream_of
from patchq.config import Project
from patchq.errors import PatchqError
from patchq.gitstore.worktree import Edit
from patchq.paths import show
from patchq.work import state as states
from patchq.work.desk import at
from patchq.work.state import Below, State


@dataclass(frozen=True)
class Look:
    """The working tree of a queue. `behind`: the series was changed since, or a switch was cut
    short; the next command that works in the tree sees to it.
    """

    folder: str
    applied: tuple[str, ...]
    pending: str | None
    behind: bool
    edits: tuple[Edit, ...] = ()

    @property
    def top(self) -> str | None:
        return self.applied[-1] if self.applied else None

    def mark(self, name: str) -> str:
        """How StGit marks a patch: `+` applied, `>` on top, `-` not applied; `!` conflicts."""
        if name == self.pending:
            return "!"
        if name == self.top:
            return ">"
        return "+" if name in self.applied else "-"


@dataclass(frozen=True)
class Unrefreshed:
    """The edits that no patch has yet, as a diff against the top patch."""

    queue: str
    top: str | None
    edits: tuple[Edit, ...]
    diff: bytes = field(repr=False)


def look(queue: Queue, *, edits: bool = False) -> Look | None:
    """The queue's working tree; None where it has none. `edits`: look at its files as well."""
    place = states.place_of(queue.project, queue.config.name)
    state = states.read(place)
    if state is None:
        return None
    found = _edits(queue, state) if edits else ()
    here = Below(queue.state.release, queue.state.commit, queue.state.tree)
    return Look(
        str(place.tree),
        tuple(each.name for each in state.applied),
        state.pending.name if state.pending else None,
        state.origin is not None or not states.is_of(state, here, queue.series.applied),
        found,
    )


def unrefreshed(queue: Queue, paths: Sequence[bytes] = ()) -> Unrefreshed:
    """The diff of the edits, of those at or below `paths` where given.

    Raises PatchqError where there is no working tree.
    """
    state = states.read(states.place_of(queue.project, queue.config.name))
    if state is None:
        raise PatchqError(f"{queue.config.name} has no working tree yet", "`patchq push` makes one")
    with upstream_of(queue, offline=True) as upstream:
        desk = at(queue, upstream.store, state.base, state)
        edits = tuple(
            each for each in desk.edits() if not paths or any(below(each.path, p) for p in paths)
        )
        diff = b""
        if edits:
            tree = desk.worktree.write_tree(edits)
            (diff,) = upstream.store.diff_texts([(state.stands, tree)])
    top = state.top.name if state.applied else None
    return Unrefreshed(queue.config.name, top, edits, diff)


def below(path: bytes, folder: bytes) -> bool:
    """Whether `path` is `folder` or stands in it; everything stands in the empty name."""
    return folder in (b"", path) or path.startswith(folder + b"/")


def _edits(queue: Queue, state: State) -> tuple[Edit, ...]:
    with upstream_of(queue, offline=True) as upstream:
        return at(queue, upstream.store, state.base, state).edits()


def queue_around(project: Project, start: Path) -> str | None:
    """The queue whose working tree `start` is in: that of push and pop, or a session's."""
    for folder in ("work", "sessions"):
        top = os.path.realpath(project.private / folder)
        inside = os.path.relpath(os.path.realpath(start), top).split(os.sep)
        if inside[0] not in (os.curdir, os.pardir):
            return inside[0]
    return None


def paths_in(queue: Queue, start: Path, given: Sequence[str]) -> list[bytes]:
    """Paths that the user names, as paths in the tree: from inside it they are relative to `start`.

    Raises PatchqError for one that is elsewhere.
    """
    folder = os.path.realpath(states.place_of(queue.project, queue.config.name).tree)
    here = os.path.realpath(start)
    base = here if (here + os.sep).startswith(folder + os.sep) else folder
    found = []
    for each in given:
        inside = os.path.relpath(os.path.normpath(os.path.join(base, each)), folder)
        if inside == os.pardir or inside.startswith(os.pardir + os.sep):
            raise PatchqError(f"{show(each)} is not in {folder}", "name a path inside the tree")
        found.append(b"" if inside == os.curdir else os.fsencode(inside))
    return found
