"""What was observed about a patch, and what it means: plain values, no git.

An observation is made while a patch is merged onto a new base; `verdict.judge` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    author: str = ""
    date: str = ""

    @property
    def told(self) -> str:
        """The commit as a person wants to read of it."""
        pr = f" ({self.pr})" if self.pr and f"({self.pr})" not in self.title else ""
        who = ", ".join(part for part in (self.author, self.date) if part)
        return f"{self.commit[:10]}{pr} {self.title}" + (f", by {who}" if who else "")


@dataclass(frozen=True, slots=True)
class Landing:
    """An upstream commit that brought a patch, or took it back.

    `share`: of the patch's lines, those that it changes in the same way. `release`: the first one
    that has it. `differs`: hunks in which its text is another than the patch's; None: not compared.
    """

    commit: str
    pr: str | None
    title: str
    author: str
    date: str
    share: float
    release: str = ""
    differs: int | None = None


@dataclass(frozen=True, slots=True)
class Past:
    """What upstream's commits between the two releases say of a patch.

    `landings`: those that brought it, oldest first; `reverted`: the one that took the last of them
    back for good. `named`: the words by which they are known ("#123"), empty where only lines say
    so. `whole`: all its pull requests landed. `share`: of its `lines` telling lines those that
    landed, `stands`: those that no later commit took out (`rewritten`: none that did was about
    nothing else); `unit`: the share of all patches of the same pull request together.
    `superseded`: the landing of another pull request that replaced its own. `paths`: of its own
    that the landings touched; `moved`: those that upstream moved as they were, and whether the
    landings make every line of the patch there, under whichever name; `held`: of each of its paths
    the share of lines that the landings change as well; `restated`: its notes (new files, see
    `twin`) that they add too, in other words perhaps. `twin`: the note that the landing adds byte
    for byte, by which it is known, and `loose`: of each path that it changes too, the lines it has
    no place for.
    """

    landings: tuple[Landing, ...] = ()
    share: float = 0.0
    stands: float = 0.0
    unit: float = 0.0
    lines: int = 0
    named: str = ""
    whole: bool = True
    rewritten: bool = True
    reverted: Landing | None = None
    superseded: Landing | None = None
    paths: frozenset[bytes] = frozenset()
    moved: Mapping[bytes, bool] = field(default_factory=dict)
    held: Mapping[bytes, float] = field(default_factory=dict)
    restated: frozenset[bytes] = frozenset()
    twin: bytes = b""
    loose: Mapping[bytes, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a patch besides the trees: by upstream's history, and by other means."""

    past: Past | None = None
    signals: tuple[Signal, ...] = ()


@dataclass(frozen=True, slots=True)
class Conflict:
    """A path (of the patch) that could not be merged, and in which way.

    `causes`: the upstream commits after which it no longer merged, oldest first.
    """

    path: bytes
    kind: str
    causes: tuple[Cause, ...] = ()

    @property
    def cause(self) -> Cause | None:
        return self.causes[0] if self.causes else None


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
    and what it starts from does not. `added`: the patch adds the file. `wins_empty`: with upstream
    winning every conflict nothing of the patch is left. `clear`: in a conflict, of the changes
    that stand clear of upstream's, the added lines that upstream did not add, or the lines that a
    change only removes. `doubles`: names that
    would be defined twice.
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
    added: bool = False
    wins_empty: bool = False
    clear: int = 0
    mode_only: bool = False
    upstream_changed: bool = False
    doubles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Observation:
    """All paths of one patch, and the patches with which it landed together, if any.

    `unit` and `unit_changed`: the names of the patches that, taken as one change, upstream has
    (as it is, or with other words). `past`: what upstream's history says, where it says anything;
    `extra`: what is known from elsewhere.
    """

    files: tuple[FileSeen, ...]
    unit: tuple[str, ...] = ()
    unit_changed: bool = False
    extra: tuple[Signal, ...] = ()
    past: Past | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the signals say together, and what follows.

    `yields`: paths in which upstream's text wins where the patch conflicts with it.
    """

    verdict: VerdictWord
    action: Action
    evidence: tuple[Signal, ...]
    conflicts: tuple[Conflict, ...] = ()
    findings: tuple[Finding, ...] = field(default=())
    yields: tuple[bytes, ...] = ()
