"""Whether a call fits what it calls: Python's own binding rules, on surfaces."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from patchq.judge.resolve import Defined, World
from patchq.judge.surface import Name, Parameter


def misfit(world: World, target: Defined, call: ast.Call) -> str:
    """Why `call` cannot call `target`; empty where it can, or where that cannot be seen."""
    name = target.name
    if name.kind == "function":
        if target.instance:
            return ""
        # A method that is reached through its class is given its instance by the caller.
        skip = name.bound == "class" or (name.bound == "instance" and target.through)
        return bind(name.parameters[1:] if skip else name.parameters, call)
    if name.kind != "class" or target.instance:
        return ""
    return _of_class(world, target, call)


def _of_class(world: World, target: Defined, call: ast.Call) -> str:
    line = _line_of_descent(world, target)
    if line is None:
        return ""
    for each in line:
        init = each.members.get("__init__")
        if init is not None and init.kind == "function":
            return bind(init.parameters[1:], call)
        if "__new__" in each.members:
            return ""
        if each.generated:
            return _of_fields(line, call)
    return ""


def _line_of_descent(world: World, target: Defined, depth: int = 0) -> list[Name] | None:
    """The class and all above it, nearest first; None where one is not read."""
    out = [target.name]
    for base in world.bases(target):
        if not isinstance(base, Defined) or base.name.kind != "class" or depth > 20:
            return None
        above = _line_of_descent(world, base, depth + 1)
        if above is None:
            return None
        out += above
    return out


def _of_fields(line: Sequence[Name], call: ast.Call) -> str:
    """A dataclass takes its annotated attributes by name."""
    fields = {
        key for each in line for key, member in each.members.items() if member.kind == "attribute"
    }
    strange = [k.arg for k in call.keywords if k.arg is not None and k.arg not in fields]
    return f"has no field {strange[0]!r}" if strange else ""


def bind(parameters: Sequence[Parameter], call: ast.Call) -> str:
    """The first reason why the call's arguments do not fit `parameters`."""
    places = [p for p in parameters if p.kind in ("positional", "either")]
    takes_more = any(p.kind == "args" for p in parameters)
    takes_any = any(p.kind == "kwargs" for p in parameters)
    given = [each for each in call.args if not isinstance(each, ast.Starred)]
    starred = len(given) != len(call.args)
    unpacked = any(k.arg is None for k in call.keywords)
    if len(given) > len(places) and not takes_more:
        return f"takes {len(places)} positional arguments, the call gives {len(given)}"
    filled = {p.name for p in places[: len(given)]}
    named = {p.name for p in parameters if p.kind in ("either", "keyword")}
    for keyword in call.keywords:
        if keyword.arg is None:
            continue
        if keyword.arg in filled and keyword.arg in named:
            return f"gets {keyword.arg!r} twice"
        if keyword.arg not in named and not takes_any:
            return f"has no parameter {keyword.arg!r}"
        filled.add(keyword.arg)
    if starred or unpacked:
        return ""
    lacking = [p.name for p in parameters if p.required and p.name not in filled]
    return f"needs {', '.join(map(repr, lacking))}, which the call does not give" if lacking else ""
