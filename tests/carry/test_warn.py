"""Which commit a finding is laid to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from patchq.carry import warn
from patchq.carry.ranges import Range
from patchq.carry.warn import Blame
from patchq.errors import PatchqError
from patchq.gitstore import log
from patchq.progress import SILENT
from tests.support.kit import Kit


@pytest.fixture
def blame(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> Iterator[Blame]:
    """Between v1, which has `clamp`, and v2, which has not."""
    kit.history.commit().write("util.py", b"def clamp(n): ...\n").tag("v1")
    kit.history.commit("Tidy up (#7)").write("util.py", b"def bound(n): ...\n")
    kit.history.commit("More").write("util.py", b"def bound(n): ...\nNAME = 1\n").tag("v2")
    old, new = kit.release("v1"), kit.release("v2")

    @contextmanager
    def opened(*_: object, **__: object) -> Iterator[Range]:
        yield Range(kit.store, old.commit, new.commit, "v2")

    monkeypatch.setattr(warn, "opened", opened)
    any_ = cast(Any, None)
    made = Blame(any_, any_, any_, kit.store, True, SILENT)
    yield made
    made.close()


def test_the_commit_that_took_the_name_away(blame: Blame) -> None:
    assert "#7" in blame(b"util.py", "clamp", "gone")


def test_a_finding_stands_without_its_commit_where_contents_cannot_be_fetched(
    blame: Blame, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PatchqError("3 contents are not in the store, and --offline forbids to fetch them")

    monkeypatch.setattr(log, "bring", refuse)
    assert blame(b"util.py", "clamp", "gone") == ""
