"""Values out of JSON, of the form that they are to have; ValueError, with the value, for others."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any


def table(value: Any, keys: Collection[str] | None = None) -> Mapping[str, Any]:
    """An object; `keys`: just these, all of them."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{value!r:.80} is no table")
    if keys is not None and set(value) != set(keys):
        raise ValueError(f"it is no table of {', '.join(keys)}")
    return value


def items(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{value!r:.80} is no list")
    return value


def text(value: Any, form: re.Pattern[str] | None = None) -> str:
    """A text; `form`: what it has to match, whole."""
    if not isinstance(value, str) or (form is not None and not form.fullmatch(value)):
        raise ValueError(f"{value!r:.80} is no text of the form that it has here")
    return value


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r:.80} is neither true nor false")
    return value


def number(value: Any) -> float:
    """Not negative, and of a size that a float has exactly."""
    if type(value) not in (int, float) or not 0 <= value < 1 << 53:
        raise ValueError(f"{value!r:.80} is no number")
    return float(value)
