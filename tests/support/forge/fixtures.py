"""The forge as fixtures: import them in the `conftest.py` of the tests that need them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.forge.checks import bring_descriptions
from tests.support.forge.server import Forge, Server


@cache
def start() -> Server:
    """One a process, however many folders of tests import the fixtures; it ends with the process."""
    bring_descriptions()
    return Server()


@pytest.fixture(scope="session")
def forge_server() -> Server:
    return start()


@pytest.fixture
def forge(forge_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Forge]:
    """An empty forge; after the test no request and no answer broke GitHub's descriptions."""
    made = Forge(tmp_path / "forge", forge_server.url, forge_server.checks)
    forge_server.forge = made
    yield made
    forge_server.forge = None
    broken, forge_server.checks.broken = forge_server.checks.broken, []
    assert not broken, "\n".join(broken)
