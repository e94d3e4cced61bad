"""One upstream and one queue for each story."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Queue
from tests.support.history import History


@pytest.fixture
def upstream(tmp_path: Path) -> History:
    return History(tmp_path / "upstream.git")


@pytest.fixture
def queue(tmp_path: Path, upstream: History) -> Queue:
    return Queue(tmp_path, upstream)


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One store for all of these tests: five releases are some 210 MB to download.

    Beside the workers' own folders, so that they share it; patchq holds two of them apart.
    """
    base = tmp_path_factory.getbasetemp()
    return (base.parent if base.name.startswith("popen-") else base) / "vllm-cache"
