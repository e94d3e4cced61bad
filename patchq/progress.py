"""How long work tells that it goes on, without knowing who listens."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives steps of long work; render draws them, tests and `--json` ignore them."""

    def step(self, what: str, done: int = 0, total: int | None = None, unit: str = "") -> None:
        """`what` is under way: `done` of `total` (None: unknown) in `unit` ("B": bytes)."""


class Silent:
    """Says nothing."""

    def step(self, what: str, done: int = 0, total: int | None = None, unit: str = "") -> None:
        return None


SILENT: Progress = Silent()
