"""`upstream/dependencies.toml`: what the runner is made of beside upstream, and why."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchq.errors import PatchqError

FILE = "dependencies.toml"
_KEYS = frozenset({"name", "index", "git", "version", "commit", "sha256", "import", "why"})
_PINNED = frozenset({"model", "draft", "template"})


@dataclass(frozen=True)
class Component:
    """One pinned package. `modules`: what its Python is called when imported; `index`: its name on
    the package index, empty where it is there under none.
    """

    name: str
    why: str
    index: str = ""
    git: str = ""
    version: str = ""
    commit: str = ""
    sha256: str = ""
    modules: tuple[str, ...] = ()


def read(upstream: Path) -> tuple[Component, ...]:
    """The components in the folder's file, in its order; none where there is no file.

    Raises PatchqError for a file that is malformed, or a component without a reason or a pin.
    """
    path = upstream / FILE
    where = f"{upstream.name}/{FILE}"
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ()
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PatchqError(f"{where} is not valid TOML: {error}", "correct the file") from error
    unknown = set(data) - _PINNED - {"component"}
    if unknown:
        raise PatchqError(
            f"{where} has unknown tables: {', '.join(sorted(unknown))}",
            "known are [[component]], [[model]], [[draft]] and [[template]]",
        )
    entries = data.get("component", [])
    if not isinstance(entries, list):
        raise PatchqError(f"{where}: component is not a list", "write [[component]]")
    found = tuple(_component(entry, where) for entry in entries)
    names = [each.name for each in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise PatchqError(f"{where} names {twice[0]!r} twice", "remove one of the two")
    return found


def _component(entry: Any, where: str) -> Component:
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not name:
        raise PatchqError(f"{where} has a component without a name", 'write name = "..."')
    unknown = set(entry) - _KEYS
    if unknown:
        raise PatchqError(
            f"{where}: {name} has unknown keys: {', '.join(sorted(unknown))}",
            f"known are {', '.join(sorted(_KEYS))}",
        )
    modules = entry.get("import", [])
    texts = {key: value for key, value in entry.items() if key != "import"}
    if not all(isinstance(value, str) for value in texts.values()) or not (
        isinstance(modules, list) and all(isinstance(each, str) for each in modules)
    ):
        raise PatchqError(
            f"{where}: {name} has a value that is no text", "import is a list, all else texts"
        )
    if not texts.get("why"):
        raise PatchqError(f"{where}: {name} says not why it is needed", 'write why = "..."')
    if not texts.get("version") and not texts.get("commit"):
        raise PatchqError(f"{where}: {name} is not pinned", "write version or commit")
    return Component(modules=tuple(modules), **texts)
