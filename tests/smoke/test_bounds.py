"""The table [smoke] of a profile."""

from __future__ import annotations

from typing import Any

import pytest

from patchq.errors import PatchqError
from patchq.smoke.bounds import Bounds, parse
from patchq.smoke.model import Wrong
from patchq.smoke.probes.speculation import judge


def test_it_is_read() -> None:
    table = {
        "cached_share": 0.9,
        "standstill": 120,
        "reasoning": 16000,
        "log_known": ["oneDNN .* fallback"],
        "acceptance": [[0.5, 0.99], [0, 1]],
    }
    assert parse(table, "p.toml") == Bounds(
        0.9, 120.0, 16000, ("oneDNN .* fallback",), ((0.5, 0.99), (0.0, 1.0))
    )
    assert parse({}, "p.toml") == Bounds()


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"cached_shares": 1}, "unknown keys: cached_shares"),
        ({"cached_share": 2}, "cached_share is no number from 0 to 1"),
        ({"cached_share": True}, "cached_share is no number"),
        ({"standstill": "long"}, "standstill is no number"),
        ({"reasoning": 0}, "reasoning is no whole number from 1"),
        ({"reasoning": 1.5}, "reasoning is no whole number"),
        ({"log_known": "oneDNN"}, "log_known is no list of texts"),
        ({"log_known": ["("]}, "'(' is no regular expression"),
        ({"acceptance": 1}, "acceptance is no list of pairs"),
        ({"acceptance": [[0.5]]}, "acceptance is no list of pairs"),
        ({"acceptance": [[0.9, 0.5]]}, "0.9 is more than 0.5"),
        ({"acceptance": [[0.5, 7]]}, "acceptance is no number from 0 to 1"),
    ],
)
def test_a_fault_is_named(table: dict[str, Any], says: str) -> None:
    with pytest.raises(PatchqError, match=r"p\.toml, smoke") as fault:
        parse(table, "p.toml")
    assert says in fault.value.message


def test_a_position_that_is_never_drafted_is_out_of_bounds() -> None:
    bounds = Bounds(acceptance=((0.1, 0.9), (0.1, 0.9)))
    judge([0.5, 0.5], bounds)
    with pytest.raises(Wrong, match="position 1 is never drafted"):
        judge([0.5], bounds)
