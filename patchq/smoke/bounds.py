"""The table `[smoke]` of a profile: what its runner has to reach.

cached_share = 0.5        of a warm prompt's tokens, how many at least come from the cache (0 to 1)
standstill = 60           seconds in which token counters may stand still while requests run
reasoning = 32768         most tokens of a thought
log_known = ["oneDNN"]    regular expressions: lines of the ranks' logs that are known and harmless
acceptance = [[0.3, 0.99], [0.1, 0.99]]
                          of the drafted tokens, the share accepted: least and most by position
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from patchq.errors import PatchqError
from patchq.smoke.spin import Limits

PINNED = 0.999
"""Position 0 accepted more often than this is not checked at all (facts of MIA's gate)."""
MOST_TOKENS = 10_000_000
ENOUGH = 100
"""Drafts from which on a share means something."""


@dataclass(frozen=True)
class Bounds:
    """`acceptance`: least and most share by position; positions beyond it are not judged."""

    cached_share: float = 0.5
    standstill: float = 60.0
    reasoning: int = Limits.reasoning
    log_known: tuple[str, ...] = ()
    acceptance: tuple[tuple[float, float], ...] = ()


def parse(entry: Mapping[str, Any], where: str) -> Bounds:
    """What the table says. Raises PatchqError, naming `where`."""
    known = tuple(Bounds.__dataclass_fields__)
    if unknown := sorted(set(entry) - set(known)):
        raise PatchqError(
            f"{where}, smoke: unknown keys: {', '.join(unknown)}", f"known are {', '.join(known)}"
        )
    values: dict[str, Any] = {}
    for key, most in (("cached_share", 1.0), ("standstill", 1e6)):
        if key in entry:
            values[key] = _number(entry[key], most, f"{where}, smoke: {key}")
    if "reasoning" in entry:
        values["reasoning"] = _count(entry["reasoning"], f"{where}, smoke: reasoning")
    if "log_known" in entry:
        values["log_known"] = _patterns(entry["log_known"], f"{where}, smoke: log_known")
    if "acceptance" in entry:
        values["acceptance"] = _pairs(entry["acceptance"], f"{where}, smoke: acceptance")
    return Bounds(**values)


def _number(value: Any, most: float, what: str) -> float:
    if type(value) not in (int, float) or not 0 <= value <= most:
        raise PatchqError(f"{what} is no number from 0 to {most:g}", "correct the profile")
    return float(value)


def _count(value: Any, what: str) -> int:
    if type(value) is not int or not 1 <= value <= MOST_TOKENS:
        raise PatchqError(
            f"{what} is no whole number from 1 to {MOST_TOKENS:,}", "correct the profile"
        )
    return value


def _patterns(value: Any, what: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise PatchqError(f"{what} is no list of texts", 'write ["...", ...]')
    for each in value:
        try:
            re.compile(each)
        except re.error as error:
            raise PatchqError(
                f"{what}: {each!r} is no regular expression: {error}", "correct it; `\\` escapes"
            ) from None
    return tuple(value)


def _pairs(value: Any, what: str) -> tuple[tuple[float, float], ...]:
    found = []
    for pair in value if isinstance(value, list) else [value]:
        if not isinstance(pair, list) or len(pair) != 2:
            raise PatchqError(f"{what} is no list of pairs", "write [[least, most], ...]")
        least, most = (_number(each, 1.0, what) for each in pair)
        if least > most:
            raise PatchqError(f"{what}: {least:g} is more than {most:g}", "write the least first")
        found.append((least, most))
    return tuple(found)
