"""What a Python module offers to others: its names, their signatures and annotations.

Read by griffe from the source alone; nothing is imported or run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from patchq.judge.parsed import parsed

Kind = Literal["function", "class", "attribute", "import"]

_VALUE = re.compile(r"(?P<path>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?P<call>\(.*\))?", re.DOTALL)
_GIVEN = re.compile(r"\b(?:self|cls)\.(\w+)\s*(?:,|=(?!=)|:[^=\n]*=(?!=)|\sin\b|\sas\b|\))")
READER = "1"
"""Changes whenever the same source would be read to another surface: part of the cache's key."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """`kind`: "positional", "either", "keyword", "args" or "kwargs"."""

    name: str
    kind: str
    required: bool


@dataclass(frozen=True, slots=True)
class Name:
    """One name of a module or class.

    `type`: for an attribute the annotation, or what the value says of it (a class that is called,
    a parameter's annotation and what is taken from it); for a function what it returns; both as
    source text in the module's own names. `target`: where an import comes from, dotted. `bound`:
    through what a function gets its first parameter by itself ("instance", "class", or "").
    """

    kind: Kind
    line: int = 0
    type: str = ""
    target: str = ""
    parameters: tuple[Parameter, ...] = ()
    bound: str = ""
    is_property: bool = False
    bases: tuple[str, ...] = ()
    generated: bool = False
    members: Mapping[str, Name] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Surface:
    """A module. `stars`: modules of which it takes every name; `dynamic`: it answers for names
    that its source does not show (a `__getattr__`, or names written into `globals()`).
    """

    names: Mapping[str, Name]
    stars: tuple[str, ...] = ()
    dynamic: bool = False


def read(module: str, source: bytes, *, package: bool) -> Surface | None:
    """The surface of `module`; None for what is no Python.

    `package`: the file is the `__init__.py` of it, from which relative imports count.
    """
    tree = parsed(source)
    if tree is None:
        return None
    text = source.decode("utf-8")
    import logging
    from pathlib import Path

    import griffe

    logging.getLogger("griffe").setLevel(logging.CRITICAL)
    path = Path(*module.split("."), "__init__.py" if package else "_.py")
    seen: Any = griffe.visit(module, filepath=path, code=text)
    names: dict[str, Name] = {}
    lines = text.splitlines()
    given = {
        node.name: _assigned(lines, node) for node in tree.body if isinstance(node, ast.ClassDef)
    }
    for name, member in seen.members.items():
        if not name.endswith("/*"):
            names[name] = _name(member, given)
    home = module if package else module.rpartition(".")[0]
    loose = _loose(tree, home)
    stars = [source for name, source in loose.items() if name.endswith("*")]
    for name, target in loose.items():
        if name.endswith("*"):
            continue
        known = names.get(name)
        # griffe needs the whole package to know what a relative import is relative to.
        if known is None or (known.kind == "import" and target):
            names[name] = Name("import", target=target) if target else Name("attribute")
    if "global " in text:
        for node in ast.walk(tree):
            if isinstance(node, ast.Global):
                names |= {name: Name("attribute") for name in node.names if name not in names}
    dynamic = "__getattr__" in names or "globals()" in text
    return Surface(names, tuple(stars), dynamic)


def _name(member: Any, given: Mapping[str, set[str]]) -> Name:
    if member.is_alias:
        return Name("import", target=member.target_path)
    line = member.lineno or 0
    if member.is_class:
        members = {name: _name(each, given) for name, each in member.members.items()}
        for name in given.get(member.name, ()):
            members.setdefault(name, Name("attribute", line))
        return Name(
            "class",
            line,
            bases=tuple(str(base) for base in member.bases),
            generated=_is_generated(member),
            members=members,
        )
    if member.is_function:
        return Name(
            "function",
            line,
            type=_text(member.returns),
            parameters=tuple(_parameter(each) for each in member.parameters),
            bound=_binding(member),
        )
    if "property" in member.labels:
        return Name("attribute", line, type=_text(member.annotation), is_property=True)
    return Name("attribute", line, type=_text(member.annotation) or _of_value(member))


def _binding(member: Any) -> str:
    if member.parent is None or not member.parent.is_class or "staticmethod" in member.labels:
        return ""
    return "class" if "classmethod" in member.labels else "instance"


def _parameter(parameter: Any) -> Parameter:
    words = {
        "positional-only": "positional",
        "positional or keyword": "either",
        "keyword-only": "keyword",
        "variadic positional": "args",
        "variadic keyword": "kwargs",
    }
    kind = words[str(parameter.kind.value)]
    return Parameter(
        parameter.name, kind, parameter.default is None and kind not in ("args", "kwargs")
    )


def _is_generated(member: Any) -> bool:
    """Whether a decorator makes what the class takes: its `__init__` is not in the source."""
    return bool(member.decorators)


def _text(expression: Any) -> str:
    return "" if expression is None else str(expression)


def _of_value(member: Any) -> str:
    """The type that an attribute's value shows: `A(...)` is an A; a parameter is what it is
    annotated as, and `parameter.x.y` what stands there.
    """
    found = _VALUE.fullmatch(_text(member.value))
    if found is None:
        return ""
    path = found["path"]
    if found["call"]:
        return path
    if member.parent is None or not member.parent.is_class:
        return ""
    init = member.parent.members.get("__init__")
    if init is None or not init.is_function:
        return ""
    first, _, rest = path.partition(".")
    for parameter in init.parameters:
        if parameter.name == first and parameter.annotation is not None:
            plain = only_class(_text(parameter.annotation))
            return f"{plain}.{rest}" if rest and plain else plain
    return ""


def dotted(node: ast.AST) -> str:
    """`a.b.c` as written, or nothing for any other expression."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


def only_class(annotation: str) -> str:
    """The one class that an annotation names, as written: of `X | None`, `Optional[X]`, `"X"`."""
    try:
        node: ast.expr = ast.parse(annotation.strip("'\" "), mode="eval").body
    except SyntaxError:
        return ""
    found = list(_classes(node))
    return found[0] if len(found) == 1 else ""


def _classes(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.BinOp):
        yield from _classes(node.left)
        yield from _classes(node.right)
    elif isinstance(node, ast.Subscript):
        if dotted(node.value).rpartition(".")[2] in ("Optional", "Annotated", "Final", "ClassVar"):
            inner = node.slice
            yield from _classes(inner.elts[0] if isinstance(inner, ast.Tuple) else inner)
        else:
            yield dotted(node.value)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield node.value
    else:
        yield dotted(node)


def _assigned(lines: list[str], node: ast.ClassDef) -> set[str]:
    """Attributes that any method may give its instance; griffe looks at `__init__` alone."""
    return set(_GIVEN.findall("\n".join(lines[node.lineno - 1 : node.end_lineno])))


def _loose(tree: ast.Module, package: str) -> dict[str, str]:
    """Names that the module binds in any other way outside of functions and classes, and where
    those come from that an import brings. `*`, numbered, stands for a star import.
    """
    found: dict[str, str] = {}
    todo: list[ast.AST] = list(reversed(tree.body))
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = ""
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.setdefault(node.id, "")
        elif isinstance(node, ast.Import):
            found |= {(each.asname or each.name).partition(".")[0]: "" for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            source = import_source(node, package)
            for each in node.names:
                star = each.name == "*"
                name = f"{len(found)}*" if star else each.asname or each.name
                found[name] = source if star else f"{source}.{each.name}"
        todo += reversed(list(ast.iter_child_nodes(node)))
    return found


def import_source(node: ast.ImportFrom, package: str) -> str:
    """The module that `from ... import` names, dotted; `package` is the one it stands in."""
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    parts = parts[: len(parts) - node.level + 1]
    return ".".join([*parts, *([node.module] if node.module else [])])
