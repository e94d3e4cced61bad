"""Values of CMake variables, as far as they are known without running CMake: pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from patchq.build.native.cmake import Argument

_REFERENCE = re.compile(r"\$\{([A-Za-z_][\w.+-]*)\}")
_NESTED = re.compile(r"(\$\{[\w.+-]*)(\$\{[A-Za-z_][\w.+-]*\})")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_TRUE = frozenset({"1", "ON", "YES", "TRUE", "Y"})
_FALSE = frozenset({"", "0", "OFF", "NO", "FALSE", "N", "IGNORE", "NOTFOUND"})
_DEEP = 20
"""References in the names of references that are followed."""


@dataclass(frozen=True, slots=True)
class Value:
    """A list of strings. Not `exact`: some of them may be absent, and others may be there."""

    items: tuple[str, ...] = ()
    exact: bool = True

    @property
    def text(self) -> str:
        return ";".join(self.items)


UNKNOWN = Value((), exact=False)
Values = Mapping[str, Value]


def split(text: str) -> list[str]:
    return [part for part in text.split(";") if part]


def join(values: Sequence[Value | None]) -> Value:
    """What a variable may be after branches of which any may have been taken."""
    items = dict.fromkeys(item for value in values if value for item in value.items)
    same = all(value == values[0] for value in values)
    return values[0] if same and values[0] else Value(tuple(items), exact=False)


def expand(text: str, known: Values) -> tuple[str, bool]:
    """`text` with its references replaced, and whether all of them were known.

    One that is not known stays as it stands, so that people see what it is. What comes in for one
    is not looked at again.
    """
    exact = "$ENV{" not in text and "$CACHE{" not in text

    def replaced(found: re.Match[str]) -> str:
        nonlocal exact
        value = known.get(found[1])
        exact = exact and value is not None and value.exact
        return found[0] if value is None else value.text

    for _ in range(_DEEP):
        # `${${A}_B}`: the inner one makes the name of the outer one.
        nested = _NESTED.sub(lambda found: found[1] + replaced(_inner(found[2])), text)
        if nested == text:
            break
        text = nested
    return _REFERENCE.sub(replaced, text), exact


def _inner(text: str) -> re.Match[str]:
    found = _REFERENCE.fullmatch(text)
    assert found
    return found


def expand_all(arguments: Iterable[Argument], known: Values) -> Value:
    """All arguments as one list; quoted ones are split at `;`, too, as a list command does."""
    items: list[str] = []
    exact = True
    for each in arguments:
        text, sure = (each.text, True) if each.raw else expand(each.text, known)
        items += split(text)
        exact = exact and sure
    return Value(tuple(items), exact)


def compiled(pattern: str) -> re.Pattern[str] | None:
    """A regular expression; None for what is none. CMake's are a part of ours, but for `(?`."""
    try:
        return re.compile(pattern.replace("(?", r"(\?"))
    except (re.error, RecursionError):
        return None


def numbers(version: str) -> tuple[int, ...]:
    """A version's parts; what is no number ends it, as CMake compares versions."""
    found: list[int] = []
    for part in version.split("."):
        match = re.match(r"\d+", part)
        if not match:
            break
        found.append(int(match[0][:9]))
        if match.end() < len(part):
            break
    while found and found[-1] == 0:
        found.pop()
    return tuple(found)


def decide(condition: Sequence[Argument], known: Values) -> bool | None:
    """Whether an `if` is taken; None where that is not known. (cmake-commands: if)"""
    tokens = list(condition)
    tokens.reverse()
    return _either(tokens, known) if tokens else None


def _either(tokens: list[Argument], known: Values) -> bool | None:
    found = _both(tokens, known)
    while tokens and _is(tokens[-1], "OR"):
        tokens.pop()
        right = _both(tokens, known)
        found = True if found or right else None if found is None or right is None else False
    return found


def _both(tokens: list[Argument], known: Values) -> bool | None:
    found = _not(tokens, known)
    while tokens and _is(tokens[-1], "AND"):
        tokens.pop()
        right = _not(tokens, known)
        if found is False or right is False:
            found = False
        else:
            found = None if found is None or right is None else True
    return found


def _not(tokens: list[Argument], known: Values) -> bool | None:
    turned = False
    while tokens and _is(tokens[-1], "NOT"):
        tokens.pop()
        turned = not turned
    found = _one(tokens, known)
    return found if found is None or not turned else not found


_TESTS = frozenset(
    {"DEFINED", "EXISTS", "IS_DIRECTORY", "IS_ABSOLUTE", "COMMAND", "TARGET", "POLICY", "TEST"}
)


def _one(tokens: list[Argument], known: Values) -> bool | None:
    if not tokens:
        return None
    first = tokens.pop()
    if first.raw and first.text == "(":
        found = _either(tokens, known)
        if tokens and tokens[-1].raw and tokens[-1].text == ")":
            tokens.pop()
        return found
    if not first.quoted and first.text in _TESTS:
        asked = tokens.pop().text if tokens else ""
        sure = first.text == "DEFINED" and asked in known and known[asked].exact
        return True if sure else None
    if len(tokens) > 1 and not tokens[-1].quoted and tokens[-1].text in _COMPARISONS:
        what = tokens.pop().text
        return _compare(first, what, tokens.pop(), known)
    return _truth(first, known)


def _truth(argument: Argument, known: Values) -> bool | None:
    text, exact = expand(argument.text, known)
    if not exact:
        return None
    upper = text.upper()
    if upper in _TRUE or (upper.isdecimal() and int(upper[:9]) != 0):
        return True
    if upper in _FALSE or upper.endswith("-NOTFOUND"):
        return False
    if argument.quoted:
        return False
    value = known.get(text)
    if value is None or not value.exact:
        return None
    inner = value.text.upper()
    return not (inner in _FALSE or inner.endswith("-NOTFOUND"))


def _compare(left: Argument, what: str, right: Argument, known: Values) -> bool | None:
    one, other = _operand(left, known), _operand(right, known, literal=True)
    if what == "IN_LIST":
        listed = known.get(right.text)
        if one is None or listed is None or not listed.exact:
            return None
        return one in listed.items
    if one is None or other is None:
        return None
    if what == "MATCHES":
        pattern = compiled(other)
        return None if pattern is None else bool(pattern.search(one))
    if what == "STREQUAL":
        return one == other
    return _ORDERS[what.removeprefix("VERSION_")](numbers(one), numbers(other))


def _operand(argument: Argument, known: Values, *, literal: bool = False) -> str | None:
    """A side of a comparison: a variable's value where it names one, else itself.

    A name on the left that is no known variable is one that we do not know.
    """
    text, exact = expand(argument.text, known)
    if not exact:
        return None
    if argument.quoted:
        return text
    if text in known:
        return known[text].text if known[text].exact else None
    return None if _IDENTIFIER.fullmatch(text) and not literal else text


def _is(argument: Argument, word: str) -> bool:
    return not argument.quoted and argument.text == word


_ORDERS: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    "EQUAL": lambda one, other: one == other,
    "LESS": lambda one, other: one < other,
    "GREATER": lambda one, other: one > other,
    "LESS_EQUAL": lambda one, other: one <= other,
    "GREATER_EQUAL": lambda one, other: one >= other,
}
_COMPARISONS = frozenset(
    {"STREQUAL", "MATCHES", "IN_LIST", *_ORDERS, *(f"VERSION_{each}" for each in _ORDERS)}
)
