"""What a doctor says: checks, each a sentence with its reason and remedy, and what they come to.

Every module of this room has a function `check(...)` that returns a tuple of Check. It raises for
nothing that it can say: a file that is damaged or a node that does not answer is a Check.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from patchq.errors import Incomplete, PatchqError, ProofFailed

State = Literal["ok", "note", "warning", "fatal", "unknown"]
"""`note`: worth knowing; `warning`: it runs, but not as it should; `fatal`: it will not run, or not
as what was tested; `unknown`: it could not be found out, because something was not reached or does
not say."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at. `says` is a sentence without a full stop, as is `reason`;
    `remedy` is what to do, best a command."""

    name: str
    state: State
    says: str
    reason: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """All checks, in the order in which they were made."""

    checks: tuple[Check, ...]

    @property
    def exit_code(self) -> int:
        """5 if anything is fatal, 6 if anything is unknown, else 0."""
        states = {check.state for check in self.checks}
        if "fatal" in states:
            return ProofFailed.exit_code
        return Incomplete.exit_code if "unknown" in states else 0


def of_error(name: str, problem: PatchqError) -> Check:
    """A file that is bad is fatal; what was not reached is unknown."""
    state: State = "unknown" if isinstance(problem, Incomplete) else "fatal"
    return Check(name, state, problem.message, remedy=problem.hint)
