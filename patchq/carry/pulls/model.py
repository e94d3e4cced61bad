"""What the commands about pull requests come to: values that render draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from patchq.carry.clash import Clash
from patchq.carry.pulls.book import Entry
from patchq.carry.report import DECISION, DONE, INCOMPLETE, Proof
from patchq.judge.model import Conflict, Signal
from patchq.queue.patch import Patch


@dataclass(frozen=True)
class Asked:
    """How much was seen of the forge: since when, by which means ("" from the record alone)."""

    as_of: datetime
    means: str = ""
    missing: tuple[str, ...] = ()
    offline: bool = False


@dataclass(frozen=True)
class Stop:
    """Why a change cannot be put on the series: conflicts, or signals that disagree.

    `clashes` has the sides of each conflict.
    """

    patch: str
    conflicts: tuple[Conflict, ...]
    evidence: tuple[Signal, ...]
    clashes: tuple[Clash, ...] = ()


@dataclass(frozen=True)
class AddReport:
    """`patches` are the new ones; nothing was written where `stops` is not empty.

    `left_out` are the files that --exclude kept out, `there` the subjects of changes that the base
    has already.
    """

    queue: str
    entry: Entry
    asked: Asked
    tracked: bool
    patches: tuple[Patch, ...] = ()
    left_out: tuple[bytes, ...] = ()
    there: tuple[str, ...] = ()
    stops: tuple[Stop, ...] = ()
    notes: tuple[str, ...] = ()
    tree: str = ""
    proof: Proof = field(default_factory=Proof)
    journal: int | None = None
    dry_run: bool = False

    @property
    def exit_code(self) -> int:
        if self.stops:
            return DECISION
        return INCOMPLETE if self.asked.missing else DONE


@dataclass(frozen=True)
class ListReport:
    queue: str
    entries: tuple[Entry, ...]
    asked: Asked

    @property
    def exit_code(self) -> int:
        return INCOMPLETE if self.asked.missing else DONE


@dataclass(frozen=True)
class Moved:
    """One pull request after a look: what is news, and how its head moved.

    `range_diff` is what changed in its own diff, "" where nothing or where `why` says why it is
    not known. `done`: what became of it ("asked", "accepted", "held", "" where nothing is asked).
    """

    entry: Entry
    news: tuple[str, ...] = ()
    range_diff: str = ""
    why: str = ""
    done: str = ""


@dataclass(frozen=True)
class RefreshReport:
    """`patches` are those that were written anew, `dropped` those that went with it."""

    queue: str
    moved: tuple[Moved, ...]
    asked: Asked
    patches: tuple[Patch, ...] = ()
    dropped: tuple[str, ...] = ()
    own_edits: tuple[str, ...] = ()
    stops: tuple[Stop, ...] = ()
    tree: str = ""
    proof: Proof = field(default_factory=Proof)
    journal: int | None = None
    dry_run: bool = False

    @property
    def exit_code(self) -> int:
        if self.stops or any(each.done == "asked" for each in self.moved):
            return DECISION
        return INCOMPLETE if self.asked.missing else DONE


@dataclass(frozen=True)
class LeftReport:
    """A pull request that is no longer tracked, or refused. `notes` say what still holds it."""

    queue: str
    key: str
    done: str
    why: str
    notes: tuple[str, ...]
    journal: int | None


@dataclass(frozen=True)
class Reason:
    """Why a pull request may matter, and how much that weighs."""

    weight: int
    says: str


@dataclass(frozen=True)
class Candidate:
    key: str
    title: str
    state: str
    author: str
    updated_at: str
    score: int
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class FindReport:
    """`left_out`: how many were found that are tracked or refused already."""

    queue: str
    terms: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    left_out: Mapping[str, int]
    asked: Asked
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        return INCOMPLETE if self.asked.missing else DONE
