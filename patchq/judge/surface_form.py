"""A surface as JSON, in which it is kept by the blob that it was read from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from patchq.judge.surface import Name, Parameter, Surface


def to_json(surface: Surface) -> dict[str, Any]:
    return {
        "names": {key: _name_json(value) for key, value in surface.names.items()},
        "stars": list(surface.stars),
        "dynamic": surface.dynamic,
    }


def _name_json(name: Name) -> list[Any]:
    parameters = [[p.name, p.kind, p.required] for p in name.parameters]
    members = {key: _name_json(value) for key, value in name.members.items()}
    flags = [name.bound, name.is_property, name.generated]
    return [
        name.kind,
        name.line,
        name.type,
        name.target,
        parameters,
        list(name.bases),
        flags,
        members,
    ]


def from_json(data: Mapping[str, Any]) -> Surface:
    names = {key: _name_from(value) for key, value in data["names"].items()}
    return Surface(names, tuple(data["stars"]), bool(data["dynamic"]))


def _name_from(data: list[Any]) -> Name:
    kind, line, type_, target, parameters, bases, (bound, is_property, generated), members = data
    return Name(
        kind,
        line,
        type_,
        target,
        tuple(Parameter(*each) for each in parameters),
        bound,
        is_property,
        tuple(bases),
        generated,
        {key: _name_from(value) for key, value in members.items()},
    )
