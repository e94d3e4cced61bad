"""One entry of `upstream/dependencies.toml`, checked before a value is made of it."""

from __future__ import annotations

import re
from typing import Any

from patchq.errors import PatchqError

KEYS = {
    "component": {"name", "index", "git", "version", "commit", "sha256", "import", "why"},
    "model": {"name", "repository", "revision", "sha256", "why"},
    "draft": {"name", "repository", "revision", "sha256", "block_size", "why"},
    "template": {"name", "repository", "revision", "sha256", "file", "why"},
    "relaxed": {"of", "requirement", "why"},
    "hardware": {"machine", "python", "glibc", "cuda", "why"},
}
_LISTS = frozenset({"import", "requires"})
_TYPES: dict[str, type] = {"block_size": int}
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def entries(data: dict[str, Any], kind: str, where: str) -> list[Any]:
    """The list of tables called `kind`. Raises PatchqError for anything else."""
    entries = data.get(kind, [])
    if not isinstance(entries, list):
        raise PatchqError(f"{where}: {kind} is not a list", f"write [[{kind}]]")
    return entries


def checked(entry: Any, kind: str, where: str) -> dict[str, Any]:
    """The entry's values; lists as tuples. Raises PatchqError for whatever is no such entry."""
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not name:
        raise PatchqError(f"{where} has a {kind} without a name", 'write name = "..."')
    if not _NAME.fullmatch(name) or name in ("retired", "resolutions"):
        raise PatchqError(
            f"{where}: {name!r} cannot be the name of a {kind}",
            "use lower-case letters, digits and dashes",
        )
    known = KEYS[kind] | {"name", *(("requires",) if kind != "relaxed" else ())}
    unknown = set(entry) - known
    if unknown:
        raise PatchqError(
            f"{where}: {name} has unknown keys: {', '.join(sorted(unknown))}",
            f"known are {', '.join(sorted(known))}",
        )
    values: dict[str, Any] = {}
    for key, value in entry.items():
        if key in _LISTS and isinstance(value, list) and all(isinstance(v, str) for v in value):
            values[key] = tuple(value)
        elif key not in _LISTS and type(value) is _TYPES.get(key, str) and value != 0:
            values[key] = value
        else:
            raise PatchqError(
                f"{where}: {name} has a value that is no text: {key}",
                "import and requires are lists of texts, block_size a number, all else texts",
            )
    if not values.get("why") and kind != "hardware":
        raise PatchqError(f"{where}: {name} says not why it is needed", 'write why = "..."')
    if values.get("sha256") and not _SHA256.fullmatch(values["sha256"]):
        raise PatchqError(
            f"{where}: {name} has a sha256 that is none", "write 64 hexadecimal digits, or none"
        )
    for text in values.get("requires", ()):
        _require_requirement(text, f"{where}: {name}")
    return values


def _require_requirement(text: str, where: str) -> None:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        Requirement(text)
    except InvalidRequirement as error:
        raise PatchqError(
            f"{where} requires {text!r}, which is no requirement: {error}",
            'write it as "package>=1.2"',
        ) from error
