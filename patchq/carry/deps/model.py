"""What `patchq deps` comes to: values that render draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from patchq.carry.report import DECISION, DONE, INCOMPLETE, UNPROVED, Check, Proof, SyncReport
from patchq.judge.model import Finding
from patchq.judge.needs import Solution

if TYPE_CHECKING:
    from patchq.upstream.components import Hardware


@dataclass(frozen=True)
class Part:
    """An entry of the file. `patches` are those of its own queue, held ones included."""

    kind: str
    name: str
    pin: str
    origin: str
    why: str
    sha256: str = ""
    patches: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    detail: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ListReport:
    """The narrow list: what the runner on `base` is made of."""

    queue: str
    base: str
    hardware: Hardware | None
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class CheckReport:
    """Whether all of it fits at once. `solution.versions` are by package, `would_fit` by component.

    `source_only`: releases without a wheel for the hardware; `by_hand`: what they ask for is known
    from the file alone; `missing`: what could not be learned.
    """

    base: str
    hardware: Hardware
    solution: Solution
    source_only: tuple[str, ...]
    by_hand: tuple[str, ...]
    missing: tuple[str, ...]
    would_fit: Mapping[str, str] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """0 all of it fits, 5 it does not, 6 something was not reached."""
        if not self.solution.ok:
            return UNPROVED
        return INCOMPLETE if self.missing else DONE


@dataclass(frozen=True)
class Retirement:
    """A patch that says when it goes, and how that stands.

    `holds`: its rule holds with what is pinned; else it would with `by` ("flashinfer 0.7.2"; "" for
    what nobody knows yet). `check`: how its own check went without it, None where it was not run.
    """

    queue: str
    patch: str
    rule: str
    holds: bool
    by: str = ""
    check: Check | None = None


@dataclass(frozen=True)
class Newer:
    """A part that has a newer release or revision, or has none (`newer` is empty).

    `newer`: releases and their dates, the newest last; `breaks` is what contradicts with the newest
    of them; `brings` says what it asks for otherwise; `findings`: what our patched files use and it
    lacks (None: not looked through).
    """

    kind: str
    name: str
    pin: str
    date: str
    newer: tuple[tuple[str, str], ...] = ()
    breaks: Solution | None = None
    brings: tuple[str, ...] = ()
    findings: tuple[Finding, ...] | None = None
    says: str = ""


@dataclass(frozen=True)
class OutdatedReport:
    base: str
    parts: tuple[Newer, ...]
    retirements: tuple[Retirement, ...]
    missing: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """0 done, 6 something was not reached."""
        return INCOMPLETE if self.missing else DONE


@dataclass(frozen=True)
class UpdateReport:
    """What became of an update. `conflicts` contradict it: nothing was written, unless they were
    recorded as set aside (`relaxed`, with `why`).

    `sync`: how the component's own patches were carried; None where it has none. `proof`: what was
    verified. `files`: what changes, from the project's root.
    """

    kind: str
    name: str
    old: str
    new: str
    source: str
    sha256: str
    solution: Solution | None
    before: Solution | None = None
    relaxed: tuple[str, ...] = ()
    brings: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    retirements: tuple[Retirement, ...] = ()
    sync: SyncReport | None = None
    proof: Proof = field(default_factory=Proof)
    changed: bool = False
    recorded: bool = False
    entry: int | None = None
    dry_run: bool = False
    files: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def contradicted(self) -> bool:
        return self.solution is not None and not self.solution.ok

    @property
    def exit_code(self) -> int:
        """0 done; 4 it contradicts, or a patch asks; 5 a proof failed; 6 not all was reached."""
        if self.contradicted:
            return DECISION
        if self.sync is not None and self.sync.exit_code in (DECISION, UNPROVED):
            return self.sync.exit_code
        if self.proof.checks and not self.proof.ok:
            return UNPROVED
        return INCOMPLETE if self.missing else DONE
