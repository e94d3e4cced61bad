"""An issue, its comments, and what people do to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.forge.repo import Repo


@dataclass(frozen=True)
class Comment:
    id: int
    body: str
    author: str
    when: datetime


@dataclass(eq=False)
class Issue:
    """`number` is counted together with those of pull requests."""

    repo: Repo
    number: int
    title: str
    body: str
    author: str
    labels: list[str]
    state: str = "open"
    reason: str | None = None
    created_at: datetime = field(init=False)
    updated_at: datetime = field(init=False)
    closed_at: datetime | None = None
    comments: list[Comment] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.created_at = self.updated_at = self.repo.clock.tick()

    def says(self, body: str) -> Issue:
        self.body = body
        return self._touched()

    def closes(self, reason: str = "completed") -> Issue:
        self.state, self.reason = "closed", reason
        self._touched()
        self.closed_at = self.updated_at
        return self

    def reopens(self) -> Issue:
        self.state, self.reason, self.closed_at = "open", "reopened", None
        return self._touched()

    def _touched(self) -> Issue:
        self.updated_at = self.repo.clock.tick()
        return self
