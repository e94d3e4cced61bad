"""One shop is made for all tests of releases; each gets a copy of its own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.release.shop import Shop
from tests.support.forge.fixtures import forge, forge_server  # noqa: F401
from tests.upstream.conftest import Site

_MADE: list[tuple[Path, str]] = []


@pytest.fixture
def shop(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Shop:
    """Not a fixture of the session's: it is made sealed, as a test is."""
    if not _MADE:
        site = Site()
        folder = tmp_path_factory.mktemp("shop")
        monkeypatch.setenv("PIP_INDEX_URL", f"{site.url}/simple")
        monkeypatch.setenv("PATCHQ_CACHE", str(folder / "cache"))
        try:
            Shop(folder).start(site)
        finally:
            site.stop()
        _MADE.append((folder, f"{site.url}/simple"))
    folder, address = _MADE[0]
    # What upstream and its index said is kept there; nothing of it changes.
    monkeypatch.setenv("PATCHQ_CACHE", str(folder / "cache"))
    monkeypatch.setenv("PIP_INDEX_URL", address)
    for name in ("queue", "key", "key.pub"):
        source = folder / name
        copy = shutil.copytree if source.is_dir() else shutil.copy2
        copy(source, tmp_path / name)
    return Shop(tmp_path)
