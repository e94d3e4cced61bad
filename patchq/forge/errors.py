"""What can go wrong with a forge, each in one sentence and what to do about it."""

from __future__ import annotations

from typing import Literal

from patchq.errors import Incomplete

Kind = Literal["token", "absent", "limit", "server", "network", "answer", "refused"]


class ForgeError(Incomplete):
    """The forge did not give what was asked; `kind` says whose matter it is.

    token: it is refused. absent: not there, or not for these eyes. limit: the rate limit, for
    longer than is waited. server: it failed. network: not reached. answer: cannot be read.
    refused: it is understood, and not done.
    """

    def __init__(self, kind: Kind, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.kind = kind

    @property
    def sentence(self) -> str:
        return f"{self.message}: {self.hint}" if self.hint else self.message
