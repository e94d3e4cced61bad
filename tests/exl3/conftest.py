"""One sliced checkpoint in both layouts for a module, and a copy of it to be spoiled."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.slices import make_both


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_both(tmp_path_factory.mktemp("made"))


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Path:
    """The layout `shared`, to be spoiled."""
    shutil.copytree(made / "shared", tmp_path / "shared")
    return tmp_path / "shared"
