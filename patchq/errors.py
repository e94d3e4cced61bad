"""Errors that reach the user: one sentence what is wrong, one what to do.

The exit codes are the house's: 1 the user's error, 2 usage, 3 our bug (any exception that
is not a `PatchqError`), 4 a decision is needed, 5 a gate or proof failed, 6 incomplete.
"""

from __future__ import annotations


class PatchqError(Exception):
    """The user can mend this.

    `message` says what is wrong and where, `hint` what to do about it.
    """

    exit_code = 1

    def __init__(self, message: str, hint: str = "", *, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if exit_code is not None:
            self.exit_code = exit_code


class UsageError(PatchqError):
    """The command line does not make sense."""

    exit_code = 2


class DecisionNeeded(PatchqError):
    """A conflict or an uncertain verdict: a person decides."""

    exit_code = 4


class ProofFailed(PatchqError):
    """A proof or a gate said no; nothing was changed."""

    exit_code = 5


class Incomplete(PatchqError):
    """A node, a network or a forge was not reached; the rest is done."""

    exit_code = 6
