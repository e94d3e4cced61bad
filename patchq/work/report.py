"""What a command on the working tree came to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from patchq.work.state import State

CONFLICT = 4

Word = Literal["pushed", "merged", "empty", "conflict", "popped", "given up", "new", "refreshed"]


@dataclass(frozen=True)
class Clash:
    """A path where both sides changed the same; `marked` says whether markers stand in it."""

    path: bytes
    kind: str
    marked: bool


@dataclass(frozen=True)
class Moved:
    """One patch, and what became of it."""

    name: str
    word: Word


@dataclass(frozen=True)
class Left:
    """A patch above a refreshed one that does not fit any more and stays as it was.

    `because`: the patch that it waits for, where it is not its own conflict.
    """

    name: str
    paths: tuple[tuple[bytes, str], ...] = ()
    because: str = ""


@dataclass(frozen=True)
class WorkReport:
    """Where the working tree stands now; `clashes` are those of the patch that could not be pushed.

    `carried` are the patches above that read anew, `left` those that could not be carried,
    `emptied` those that touch nothing any more; `litter` was left out of a refresh.
    """

    queue: str
    command: str
    folder: str
    top: str | None
    applied: int
    unapplied: int
    moved: tuple[Moved, ...] = ()
    pending: str | None = None
    clashes: tuple[Clash, ...] = ()
    carried: tuple[str, ...] = ()
    left: tuple[Left, ...] = ()
    emptied: tuple[str, ...] = ()
    taken: tuple[bytes, ...] = ()
    litter: tuple[bytes, ...] = ()
    says: tuple[str, ...] = ()
    entry: int | None = None
    dry_run: bool = False

    @property
    def exit_code(self) -> int:
        return CONFLICT if self.clashes else 0


def standing(
    queue: str, command: str, folder: str, state: State, total: int, dry_run: bool
) -> WorkReport:
    """The report with nothing but where the tree stands in `state`, of `total` patches."""
    count = len(state.applied)
    return WorkReport(
        queue,
        command,
        folder,
        state.top.name if state.applied else None,
        count,
        total - count,
        pending=state.pending.name if state.pending else None,
        dry_run=dry_run,
    )
