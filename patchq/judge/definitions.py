"""Which names a Python source defines, per scope: what stands twice is a bug nobody reports.

Upstream adds the helper that a patch adds, elsewhere in the file: every tool applies the patch
cleanly and the function stands twice, the later one winning without a word.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

Scope = tuple[str, ...]
_BINDS = re.compile(
    rb"^[ \t]*(?:(?:async[ \t]+def|def|class)[ \t]+(\w+)|(\w+)[ \t]*[:=])", re.MULTILINE
)
_DEFINES = re.compile(rb"^[ \t]*(?:async[ \t]+def|def|class)[ \t]+(\w+)", re.MULTILINE)


def named(source: bytes) -> frozenset[bytes]:
    """Names that the `def` and `class` lines of `source` define (a cheap first look)."""
    if b"def " not in source and b"class " not in source:
        return frozenset()
    return frozenset(_DEFINES.findall(source))


@lru_cache(maxsize=256)
def definitions(source: bytes) -> Counter[tuple[Scope, str]] | None:
    """How often each (scope, name) is defined; None where the source does not parse.

    Counted are functions and classes everywhere, assigned names in class bodies and annotated
    ones at module level.
    """
    tree = parse(source)
    if tree is None:
        return None
    found: Counter[tuple[Scope, str]] = Counter()
    _collect(tree.body, (), found, in_class=False)
    return found


def parse(source: bytes) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def _collect(
    body: Iterable[ast.stmt], scope: Scope, found: Counter[tuple[Scope, str]], *, in_class: bool
) -> None:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found[scope, node.name] += 1
            inner = isinstance(node, ast.ClassDef)
            _collect(node.body, (*scope, node.name), found, in_class=inner)
            continue
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if in_class or not scope:
                found[scope, node.target.id] += 1
        elif isinstance(node, ast.Assign) and in_class:
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found[scope, target.id] += 1
        for field in ("body", "orelse", "finalbody"):
            inside = getattr(node, field, None)
            if isinstance(inside, list):
                _collect(inside, scope, found, in_class=in_class)
        for handler in getattr(node, "handlers", []):
            _collect(handler.body, scope, found, in_class=in_class)


def may_repeat(source: bytes, added: bytes | None = None) -> bool:
    """Whether some name may stand twice in `source`: a first look, without parsing it.

    With `added`, only names that those lines of it define count.
    """
    counts = _bound(source)
    names = counts if added is None else _bound(added)
    return any(counts[name] > 1 for name in names)


def _bound(source: bytes) -> Counter[bytes]:
    return Counter(one or other for one, other in _BINDS.findall(source))


def doubles(result: bytes, *sides: bytes) -> tuple[str, ...]:
    """Dotted names that `result` defines more than once and more often than any of `sides`.

    `sides` are upstream's text and the patched text that the result was merged from: overloads
    and conditional definitions stand twice there already.
    """
    counts = definitions(result)
    known = [definitions(side) for side in sides]
    if counts is None or any(each is None for each in known):
        return ()
    return tuple(
        sorted(
            ".".join((*scope, name))
            for (scope, name), count in counts.items()
            if count > 1 and all(count > side[scope, name] for side in known if side is not None)
        )
    )
