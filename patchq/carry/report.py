"""What a sync and a proof come to: values that render draws. Light: a sync that has nothing to do
needs no more than this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchq.carry.workspace import Queue
from patchq.judge.model import (
    Action,
    CarryWord,
    Conflict,
    Finding,
    Signal,
    VerdictWord,
)
from patchq.queue.patch import Patch
from patchq.upstream.releases import AsOf

if TYPE_CHECKING:
    from patchq.carry.clash import Clash


@dataclass(frozen=True)
class Check:
    """One part of the proof: what was tried, whether it holds, and the first reason if not."""

    name: str
    ok: bool
    detail: str = ""


@dataclass(frozen=True)
class Proof:
    """All checks; an empty proof was not made and is not ok."""

    checks: tuple[Check, ...] = ()

    @property
    def ok(self) -> bool:
        return bool(self.checks) and all(check.ok for check in self.checks)


DONE, DECISION, UNPROVED, INCOMPLETE = 0, 4, 5, 6


@dataclass(frozen=True)
class PatchReport:
    """What happened to one patch.

    `file` is its path in the project, None once it is dropped; `range_diff` is empty where nothing
    but places changed; `clashes` has the sides of each conflict.
    """

    number: int
    name: str
    subject: str
    file: str | None
    verdict: VerdictWord
    carry: CarryWord | None
    action: Action
    evidence: tuple[Signal, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    findings: tuple[Finding, ...] = ()
    range_diff: str = ""
    rewritten: bool = False
    clashes: tuple[Clash, ...] = ()


@dataclass(frozen=True)
class SyncReport:
    """The result of a sync. `entry` is the journal's, with which `patchq undo` takes it back.

    `session` is the working tree of the session that is open now and shows the patch `shown`;
    `notes` are sentences about it.
    """

    queue: str
    base_from: str
    base_to: str
    tree: str
    changed: bool
    recorded: bool
    upstream: AsOf
    patches: tuple[PatchReport, ...]
    proof: Proof
    entry: int | None = None
    recovered: str | None = None
    dry_run: bool = False
    session: str | None = None
    shown: str = ""
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 done, 4 a decision is needed, 5 a proof failed, 6 upstream was not reached."""
        if any(patch.action == "ask" for patch in self.patches):
            return DECISION
        if self.changed and not self.proof.ok:
            return UNPROVED
        return DONE if self.upstream.complete else INCOMPLETE


def nothing(queue: Queue, as_of: AsOf) -> SyncReport:
    """Nothing to do: the series stands on that release, proved."""
    held = queue.series.held
    patches = tuple(
        held_report(queue, patch, held[patch.name]) if patch.name in held else _kept(queue, patch)
        for patch in queue.series.all
    )
    state = queue.state
    return SyncReport(
        queue.config.name,
        state.release,
        state.release,
        state.runner_tree,
        False,
        False,
        as_of,
        patches,
        Proof((Check("recorded", True, "the series is the one that was proved on this base"),)),
    )


def held_report(queue: Queue, patch: Patch, why: str) -> PatchReport:
    said = (Signal("held", "needed", f"held, not applied: {why}"),)
    file = queue.path_of(patch)
    return PatchReport(
        patch.number, patch.name, patch.header.subject, file, "needed", "held", "hold", said
    )


def _kept(queue: Queue, patch: Patch) -> PatchReport:
    file = queue.path_of(patch)
    return PatchReport(
        patch.number, patch.name, patch.header.subject, file, "needed", "clean", "keep"
    )
