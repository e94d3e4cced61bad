"""CMake's `list` and `string` commands on known values: pure. (cmake-commands: list, string)"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from patchq.build.native.values import UNKNOWN, Value, compiled, split

_REPLACED = re.compile(r"\\([0-9])")


def on_list(what: str, value: Value, more: Value) -> Value | None:
    """What a `list` command that changes its list leaves of `value`; None where it changes none."""
    exact = value.exact and more.exact
    if what in ("APPEND", "PREPEND"):
        ordered = (value.items, more.items) if what == "APPEND" else (more.items, value.items)
        return Value(ordered[0] + ordered[1], exact)
    if what == "REMOVE_ITEM":
        left = tuple(each for each in value.items if each not in more.items)
        return Value(left if exact else value.items, exact)
    if what == "REMOVE_DUPLICATES":
        return Value(tuple(dict.fromkeys(value.items)), value.exact)
    if what == "REVERSE":
        return Value(value.items[::-1], value.exact)
    if what == "SORT":
        return Value(tuple(sorted(value.items, key=_natural)), value.exact)
    if what in ("FILTER", "INSERT", "REMOVE_AT", "POP_BACK", "POP_FRONT", "TRANSFORM"):
        return Value(value.items, exact=False)
    return None


def from_list(what: str, value: Value, more: Sequence[str]) -> Value:
    """What a `list` command answers: LENGTH, GET, JOIN; others are not known."""
    if not value.exact:
        return UNKNOWN
    if what == "LENGTH":
        return Value((str(len(value.items)),))
    if what == "JOIN" and more:
        return Value(tuple(split(more[0].join(value.items))))
    if what == "GET" and len(more) == 1:
        try:
            return Value((value.items[int(more[0])],))
        except (ValueError, IndexError):
            return UNKNOWN
    return UNKNOWN


def string(words: Sequence[str]) -> dict[str, str | None]:
    """The variables that a `string` command sets, and to what; None where that is not known."""
    what = words[0].upper() if words else ""
    if what == "REGEX" and len(words) > 3:
        return _regex(words[1].upper(), words[2:])
    if what == "REPLACE" and len(words) > 3:
        return {words[3]: "".join(words[4:]).replace(words[1], words[2])}
    if what == "FIND" and len(words) > 3:
        return {words[3]: str(words[1].find(words[2]))}
    if what in _PLAIN and len(words) == 3:
        return {words[2]: _PLAIN[what](words[1])}
    if what == "CONCAT" and len(words) > 1:
        return {words[1]: "".join(words[2:])}
    return {words[1]: None} if len(words) > 1 else {}


def _regex(what: str, words: Sequence[str]) -> dict[str, str | None]:
    pattern, into, name, *texts = words if what == "REPLACE" else (words[0], "", *words[1:])
    text = "".join(texts)
    found = compiled(pattern)
    if found is None:
        return {name: None}
    if what == "REPLACE":
        return {
            name: found.sub(lambda match: _REPLACED.sub(lambda n: _group(match, n), into), text)
        }
    if what == "MATCHALL":
        return {name: ";".join(match[0] for match in found.finditer(text))}
    match = found.search(text)
    groups = match.groups("") if match else ()
    matched = {f"CMAKE_MATCH_{number}": group for number, group in enumerate(groups, 1)}
    return {name: match[0] if match else "", **matched}


def _group(match: re.Match[str], number: re.Match[str]) -> str:
    index = int(number[1])
    return (match[index] or "") if index <= (match.re.groups) else ""


def _natural(text: str) -> list[tuple[int, int | str]]:
    parts = re.findall(r"\d+|\D+", text)
    return [(0, int(part[:18])) if part.isdecimal() else (1, part) for part in parts]


_PLAIN: dict[str, Callable[[str], str]] = {
    "TOUPPER": str.upper,
    "TOLOWER": str.lower,
    "STRIP": str.strip,
    "LENGTH": lambda text: str(len(text.encode("utf-8", "surrogateescape"))),
}
