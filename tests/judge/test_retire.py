"""When a patch that says so may go."""

from __future__ import annotations

import pytest

from patchq.judge.retire import Stand, stand

PINNED = {"flashinfer": "0.7.0.post1", "base": "0.32.0"}
NEWEST = {"flashinfer": "0.7.4", "base": "0.33.0"}


@pytest.mark.parametrize(
    ("rule", "holds", "by"),
    [
        ("flashinfer>=0.6.20", True, "flashinfer 0.7.0.post1"),
        ("flashinfer >= 0.7.2", False, "flashinfer 0.7.4"),
        ("flashinfer>=0.8", False, ""),
        ("flashinfer>=0.7,!=0.7.0.post1", False, "flashinfer 0.7.4"),
        ("base>=0.33", False, "base 0.33.0"),
        ("landed a/b#1", False, "a/b#1, which is merged"),
        ("landed a/b#2", False, ""),
    ],
)
def test_a_rule(rule: str, holds: bool, by: str) -> None:
    assert stand(rule, PINNED, NEWEST, {"a/b#1": True, "a/b#2": False}) == Stand(rule, holds, by)


@pytest.mark.parametrize(
    "rule", ["the moon is full", "kernels>=1", "flashinfer>=x", "reverted a/b#1", ""]
)
def test_a_rule_for_people(rule: str) -> None:
    assert stand(rule, PINNED, NEWEST, {}) is None


def test_a_pin_that_is_no_version_meets_nothing() -> None:
    assert stand("spark>=1", {"spark": "main"}, {}, {}) == Stand("spark>=1", False, "")
