"""What a night is: its stages, how it ended, what was at fault, and whom it told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

NAMES = ("sync", "build", "deploy", "smoke", "bench", "gate", "release")
"""The stages, in order; `release` only where the settings say so."""

StageState = Literal["done", "failed", "asks", "unreached", "late", "left out"]
"""`asks`: a person has to decide (exit status 4). `unreached`: a node, a network or a forge was not
there (6). `late`: it was ended at its time limit. `left out`: there was no reason to run it."""

NightState = Literal["running", "green", "quiet", "asks", "red", "incomplete"]
"""`quiet`: nothing has changed since the last green night. `incomplete`: something was not reached,
nothing is known to be wrong."""


@dataclass(frozen=True)
class Stage:
    """One stage as it ended. `began`: ISO 8601, UTC. `exit`: of the command that decided."""

    name: str
    state: StageState
    began: str
    seconds: float
    says: str
    """One sentence."""
    exit: int | None = None
    files: tuple[str, ...] = ()
    """Names of files in the night's folder: results, logs, reports."""


@dataclass(frozen=True)
class Culprit:
    """What made a night fail: a patch of the queue, or something of upstream's that moved.

    `name` and `says` may hold words of others: hostile. `confidence` is None where nothing had to
    be tried, because the stage itself names it.
    """

    kind: Literal[
        "patch",
        "base",
        "commit",
        "component",
        "template",
        "model",
        "draft",
        "profile",
        "requirements",
    ]
    name: str
    says: str
    url: str | None = None
    confidence: float | None = None


@dataclass(frozen=True)
class Fault:
    """Why a night is not green."""

    stage: str
    cause: str
    """The first cause, in one sentence."""
    lines: tuple[str, ...]
    """Of the log, those that show it."""
    reproduce: tuple[str, ...]
    """Commands, in order, that show it again in a checkout."""
    culprits: tuple[Culprit, ...] = ()


@dataclass(frozen=True)
class Told:
    """What stands on the forge because of this night and those before. Numbers of its issues."""

    pull: int | None = None
    pushed: str | None = None
    """The commit that patchq itself pushed last to the pull request's branch."""
    issue: int | None = None
    says: tuple[str, ...] = ()
    """What was done this time, a sentence each; nothing of a quiet night."""


@dataclass(frozen=True)
class Night:
    """One night: `night.json` in its folder. Times are ISO 8601, UTC."""

    name: str
    """The day, `2026-12-01`; a second run of a day is `2026-12-01.2`."""
    queue: str
    state: NightState
    began: str
    ended: str | None
    start: str
    """The project's commit that it began with."""
    commit: str | None = None
    """The commit with what sync recorded; None where it recorded nothing."""
    base: tuple[str, str] | None = None
    """Upstream's releases: before, and after."""
    tree: str | None = None
    """The runner tree."""
    lock: str | None = None
    """The runner lock's digest."""
    stages: tuple[Stage, ...] = ()
    fault: Fault | None = None
    told: Told = Told()

    def stage(self, name: str) -> Stage | None:
        return next((each for each in self.stages if each.name == name), None)
