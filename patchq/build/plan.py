"""What a series' changes come to in a wheel: pure.

Python and package data are laid over upstream's wheel; native code has to be compiled; what no
wheel holds (tests, documentation) does not concern it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

PACKAGE = b"vllm/"
NATIVE_FOLDERS = (b"csrc/", b"cmake/", b"rust/")
NATIVE_FILES = frozenset({b"CMakeLists.txt", b"Cargo.toml", b"Cargo.lock"})
NATIVE_SUFFIXES = (b".cu", b".cuh", b".cpp", b".cc", b".c", b".h", b".hpp", b".rs", b".so")
PACKAGING = frozenset({b"setup.py", b"pyproject.toml", b"MANIFEST.in"})


@dataclass(frozen=True)
class Changed:
    """One path that the series leaves otherwise than the base: object ids, None where absent."""

    path: bytes
    old: str | None
    new: str | None


@dataclass(frozen=True)
class Overlay:
    """What goes over the wheel, by path: `laid` (object ids) and `removed`.

    `native` needs a compiler, `packaging` changes what the wheel is made of, `apart` is in no
    wheel, `unlisted` would be data of the package if setup.py's package_data named it.
    """

    laid: Mapping[bytes, str]
    removed: tuple[bytes, ...]
    native: tuple[bytes, ...]
    packaging: tuple[bytes, ...]
    apart: tuple[bytes, ...]
    unlisted: tuple[bytes, ...]


def overlay(changed: Iterable[Changed], data: tuple[str, ...]) -> Overlay:
    """Sort the changes. `data`: the package's data patterns (`package_data`)."""
    laid: dict[bytes, str] = {}
    lists: dict[str, list[bytes]] = {
        key: [] for key in ("removed", "native", "packaging", "apart", "unlisted")
    }
    for each in sorted(changed, key=lambda each: each.path):
        kind = kind_of(each.path, data)
        if kind != "package":
            lists[kind].append(each.path)
        elif each.new is None:
            lists["removed"].append(each.path)
        else:
            laid[each.path] = each.new
    return Overlay(laid, **{key: tuple(value) for key, value in lists.items()})


def kind_of(path: bytes, data: tuple[str, ...]) -> str:
    """ "package", "native", "packaging", "apart" or "unlisted"."""
    if path in PACKAGING or (path.startswith(b"requirements/") and path.endswith(b".txt")):
        return "packaging"
    if path in NATIVE_FILES or path.startswith(NATIVE_FOLDERS):
        return "native"
    if not path.startswith(PACKAGE):
        return "apart"
    inner = path[len(PACKAGE) :].decode("utf-8", "surrogateescape")
    if path.endswith(b".py") or any(pattern.fullmatch(inner) for pattern in map(_glob, data)):
        return "package"
    return "native" if path.endswith(NATIVE_SUFFIXES) else "unlisted"


def _glob(pattern: str) -> re.Pattern[str]:
    """setuptools' patterns: `*` within a folder, `**/` over any number of them."""
    parts = re.split(r"(\*\*/|\*|\?)", pattern)
    words = {"**/": r"(?:.*/)?", "*": r"[^/]*", "?": r"[^/]"}
    return re.compile("".join(words.get(part, re.escape(part)) for part in parts), re.DOTALL)


def package_data(setup: bytes) -> tuple[str, ...]:
    """The patterns that `package_data` in setup.py gives for vllm; none where it cannot be read."""
    try:
        tree = ast.parse(setup)
    except (SyntaxError, ValueError):
        return ()
    for node in tree.body:
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)):
            continue
        if not any(isinstance(t, ast.Name) and t.id == "package_data" for t in node.targets):
            continue
        try:
            value = ast.literal_eval(node.value)
        except ValueError:
            return ()
        return tuple(str(each) for each in value.get("vllm", ()))
    return ()
