"""A forge on loopback, and a client of it that does not wait long."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from patchq.forge.client import Client, Patience
from tests.support.forge.fixtures import forge, forge_server  # noqa: F401
from tests.support.forge.server import Forge

QUICK = Patience(tries=2, backoff=0, secondary=0.1, longest=2, timeout=5)


class Said:
    """What a user would see of long work."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def step(self, what: str, done: int = 0, total: int | None = None, unit: str = "") -> None:
        self.lines.append(what)


@pytest.fixture
def said() -> Said:
    return Said()


@pytest.fixture
def client(forge: Forge, said: Said) -> Iterator[Client]:  # noqa: F811
    with Client(forge.api, forge.token, progress=said, patience=QUICK) as made:
        yield made


@pytest.fixture
def anyone(forge: Forge, said: Said) -> Iterator[Client]:  # noqa: F811
    """Without a token."""
    with Client(forge.api, progress=said, patience=QUICK) as made:
        yield made
