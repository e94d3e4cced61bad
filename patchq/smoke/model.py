"""How a probe can end, what a server says of itself, and what a template renders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class Wrong(Exception):
    """The probe failed; one sentence without a full stop."""


class Refused(Wrong):
    """The server answered a request with `status`, which is not 200."""

    def __init__(self, says: str, status: int) -> None:
        super().__init__(says)
        self.status = status


class NotRun(Exception):
    """Nothing can be said: not reached, no answer, a cut stream; one sentence."""


class LeftOut(Exception):
    """The probe does not apply to this server; one sentence."""


@dataclass(frozen=True)
class About:
    """What a server says of itself: /v1/models and /version; `context` in tokens."""

    url: str
    model: str
    context: int | None = None
    version: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Golden:
    """A conversation, and what the pinned template makes of it (`refused`: it has none)."""

    name: str
    messages: tuple[Mapping[str, Any], ...]
    tools: tuple[Mapping[str, Any], ...]
    values: Mapping[str, Any]
    text: str
    refused: bool = False
