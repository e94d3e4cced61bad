"""What the gate is asked, what it goes by, and what it finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal

from patchq.errors import Incomplete, ProofFailed
from patchq.smoke.bench import Bench
from patchq.smoke.evidence import Kept, Kind
from patchq.smoke.gate_forms import Compared, Figures, Smoked
from patchq.smoke.identity import Identity

State = Literal["ok", "failed", "unfinished"]
"""`failed`: it is there and does not hold; `unfinished`: it is not there, or not all of it."""


@dataclass(frozen=True)
class Finding:
    """What one rule says: a sentence without a full stop."""

    rule: str
    state: State
    says: str

    @property
    def ok(self) -> bool:
        return self.state == "ok"


@dataclass(frozen=True)
class Evidence:
    """A file that was read. `sha256` is of its bytes; `when` None: it does not say."""

    kind: Kind
    path: Path
    sha256: str
    when: datetime | None


@dataclass(frozen=True)
class Gate:
    """How the gate decided. `lock` is the digest of the runner in question, `release` its number
    where it is one, `last` the release before it; `identity` is what the evidence is bound to, None
    where none of it is of this runner."""

    lock: str
    findings: tuple[Finding, ...]
    identity: Identity | None = None
    evidence: tuple[Evidence, ...] = ()
    release: int | None = None
    last: int | None = None

    @property
    def passed(self) -> bool:
        return bool(self.findings) and all(each.ok for each in self.findings)

    @property
    def exit_code(self) -> int:
        """5 where anything failed, 6 where anything is missing or unfinished, else 0."""
        states = {each.state for each in self.findings}
        if "failed" in states:
            return ProofFailed.exit_code
        return 0 if self.passed else Incomplete.exit_code


@dataclass(frozen=True)
class Pinned:
    """What the profile says of its model, draft or template. `sha256` None: it is not pinned."""

    wanted: bool
    sha256: str | None = None


@dataclass(frozen=True)
class Before:
    """The release to compare with, and what it was measured at."""

    number: int
    lock: str
    tree: str
    figures: Figures = field(default_factory=dict)


@dataclass(frozen=True)
class Expected:
    """The runner in question. `artifacts`: its wheels, sorted, None where no build of it is known,
    and `why_not` then says so. `pinned` by model, draft, template, empty where the profile is
    not known as it was. `drafts`: whether it drafts at all. `nodes`: the cluster's, by rank;
    `machine`: what they have to be. `probes`: all that there are."""

    lock: str
    tree: str
    profile_sha256: str | None
    artifacts: tuple[tuple[str, str], ...] | None
    nodes: tuple[str, ...]
    machine: str
    probes: tuple[str, ...]
    why_not: str = ""
    pinned: Mapping[str, Pinned] = field(default_factory=dict)
    drafts: bool = True
    release: int | None = None
    last: Before | None = None


@dataclass(frozen=True)
class Found:
    """The evidence that is there: each file, and what it says. `damaged`: by kind, why a file that
    is there says nothing."""

    kept: Mapping[Kind, Kept] = field(default_factory=dict)
    smoke: Smoked | None = None
    bench: Bench | None = None
    compare: Compared | None = None
    damaged: Mapping[Kind, str] = field(default_factory=dict)
