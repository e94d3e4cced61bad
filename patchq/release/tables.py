"""Frozen dataclasses as TOML tables and back; a value has the form that its field's type states."""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

T = TypeVar("T")

SHA256 = re.compile(r"[0-9a-f]{64}")
FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}")
PULL = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9_.-]{1,100}#[1-9]\d{0,8}( @ [0-9a-f]{7,64})?"
)
LINE = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]{0,2000}")

# A text of a form, or a number of a range, is written Annotated[str, FORM] in a dataclass.
Sha256 = Annotated[str, SHA256]
FileName = Annotated[str, FILE]
Pull = Annotated[str, PULL]
Line = Annotated[str, LINE]
Tree = Annotated[str, re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")]
Word = Annotated[str, re.compile(r"[A-Za-z0-9][A-Za-z0-9._+@#/-]{0,199}")]
Date = Annotated[str, re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")]


def to_table(value: Any) -> dict[str, Any]:
    """`value`, a dataclass, as plain tables and lists; what is as by default is left out."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(value):
        entry = getattr(value, field.name)
        if field.default is not dataclasses.MISSING and entry == field.default:
            continue
        if dataclasses.is_dataclass(entry):
            entry = to_table(entry)
        elif isinstance(entry, tuple):
            entry = [to_table(each) if dataclasses.is_dataclass(each) else each for each in entry]
        elif isinstance(entry, Mapping):
            entry = dict(sorted(entry.items()))
        found[field.name] = entry
    # In TOML what belongs to no table of its own stands before all tables.
    return dict(sorted(found.items(), key=lambda pair: _is_table(pair[1])))


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and bool(value) and isinstance(value[0], dict)
    )


def from_table(kind: type[T], table: Any, where: str = "") -> T:
    """What `to_table` made. Raises ValueError, with the place, for anything else."""
    if not isinstance(table, dict):
        raise ValueError(f"{where or 'it'} is no table")
    hints = typing.get_type_hints(kind, include_extras=True)
    if odd := sorted(set(table) - set(hints)):
        raise ValueError(f"{where}{odd[0]!r} is unknown here")
    found: dict[str, Any] = {}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        name, place = field.name, f"{where}{field.name}"
        if name in table:
            found[name] = _value(hints[name], table[name], place)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ValueError(f"{place} is missing")
    return kind(**found)


def _value(hint: Any, value: Any, where: str) -> Any:
    form: Any = None
    if typing.get_origin(hint) in (types.UnionType, typing.Union):  # what is None is left out
        hint = next(each for each in typing.get_args(hint) if each is not types.NoneType)
    if typing.get_origin(hint) is Annotated:
        hint, form = typing.get_args(hint)
    if typing.get_origin(hint) is tuple:
        if not isinstance(value, list):
            raise ValueError(f"{where} is no list")
        inner = typing.get_args(hint)[0]
        return tuple(_value(inner, each, f"{where}[{n}]") for n, each in enumerate(value))
    if typing.get_origin(hint) is not None:
        return _facts(value, where)
    if dataclasses.is_dataclass(hint):
        assert isinstance(hint, type)
        return from_table(hint, value, f"{where}.")
    if hint is float and type(value) is int:
        value = float(value)
    if type(value) is not hint:
        raise ValueError(f"{where} is no {hint.__name__}")
    if isinstance(form, re.Pattern) and not form.fullmatch(value):
        raise ValueError(f"{where} is {value!r:.80}, which is not of the form that it has here")
    if isinstance(form, range) and value not in form:
        raise ValueError(f"{where} is {value}, not {form.start} to {form.stop - 1}")
    return value


def _facts(value: Any, where: str) -> Mapping[str, str]:
    if not isinstance(value, dict) or not all(
        isinstance(each, str) and LINE.fullmatch(each) for pair in value.items() for each in pair
    ):
        raise ValueError(f"{where} is no table of texts")
    return types.MappingProxyType(dict(sorted(value.items())))
