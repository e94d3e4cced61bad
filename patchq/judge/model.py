"""What was observed about a patch, and what it means: plain values, no git.

An observation is made while a patch is merged onto a new base; `verdict.judge` reads it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

VerdictWord = Literal[
    "needed",
    "landed",
    "landed-with-changes",
    "partly-landed",
    "reverted",
    "superseded",
    "updated",
    "gone",
    "uncertain",
]
CarryWord = Literal["clean", "moved", "residual", "empty", "conflict", "held"]
Action = Literal["keep", "drop", "shrink", "update", "hold", "ask"]
Says = Literal["needed", "landed", "changed", "partly", "gone", "unclear"]


@dataclass(frozen=True, slots=True)
class Signal:
    """One observation: its name, what it speaks for, in words, and where to look."""

    signal: str
    says: Says
    detail: str
    ref: str = ""


@dataclass(frozen=True, slots=True)
class Cause:
    """The upstream commit that made a conflict (found with history only)."""

    commit: str
    pr: str | None
    title: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """A path (of the patch) that could not be merged, and in which way."""

    path: bytes
    kind: str
    cause: Cause | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a person should know; `fatal` fails the proof."""

    kind: str
    path: bytes
    says: str
    fatal: bool = False


@dataclass(frozen=True, slots=True)
class FileSeen:
    """What a three-way merge and upstream's own change say about one path of a patch.

    `merge`: "clean" (ours changes it), "empty" (upstream's text results as it is), "noop" (the
    patch itself changes nothing there), "conflict". `atoms` counts the minimal changes of the
    patch; `same` those that upstream made verbatim at the same place, `elsewhere` those whose
    added block upstream added verbatim at another place. `lines` counts the added lines that are
    not blank, `found` those that upstream added too. `reverse`: the patch's result stands there
    and what it starts from does not. `wins_empty`: with upstream winning every conflict nothing
    of the patch is left. `doubles`: names that would be defined twice.
    """

    path: bytes
    new_path: bytes
    merge: Literal["clean", "empty", "noop", "conflict"]
    kind: str = ""
    atoms: int = 0
    same: int = 0
    elsewhere: int = 0
    lines: int = 0
    found: int = 0
    reverse: bool = False
    wins_empty: bool = False
    mode_only: bool = False
    upstream_changed: bool = False
    doubles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Observation:
    """All paths of one patch, and the patches with which it landed together, if any.

    `unit` and `unit_changed`: the names of the patches that, taken as one change, upstream has
    (as it is, or with other words).
    """

    files: tuple[FileSeen, ...]
    unit: tuple[str, ...] = ()
    unit_changed: bool = False
    extra: tuple[Signal, ...] = ()


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the signals say together, and what follows."""

    verdict: VerdictWord
    action: Action
    evidence: tuple[Signal, ...]
    conflicts: tuple[Conflict, ...] = ()
    findings: tuple[Finding, ...] = field(default=())
