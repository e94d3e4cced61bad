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
