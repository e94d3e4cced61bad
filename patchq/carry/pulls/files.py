"""`[[track]]` in a queue's own file, as changes to be recorded; what people wrote there stays."""

from __future__ import annotations

import tomllib
from typing import Any

from patchq.config import Project, load_queue, queue_names
from patchq.errors import PatchqError


def tracked(project: Project, queue: str, key: str, why: str) -> dict[str, bytes | None]:
    """The queue's file with `key` tracked because of `why`; its comments stay."""
    document, path = _document(project, queue)
    import tomlkit

    found = next((each for each in _tracks(document) if each["pr"] == key), None)
    if found is not None:
        if why:
            found["why"] = why
        return {path: tomlkit.dumps(document).encode()}
    # As text: an entry may follow any other table, and gets its empty line.
    text = tomlkit.dumps(document).rstrip("\n") + f'\n\n[[track]]\npr = "{key}"\n'
    if why:
        text += f"why = {tomlkit.string(why).as_string()}\n"
    tomllib.loads(text)
    return {path: text.encode()}


def untracked(project: Project, queue: str, key: str) -> dict[str, bytes | None]:
    """The queue's file without `key`; no change where it is not in it."""
    document, path = _document(project, queue)
    import tomlkit

    entries = _tracks(document)
    left = [place for place, each in enumerate(entries) if each["pr"] != key]
    if len(left) == len(entries):
        return {}
    for place in reversed(range(len(entries))):
        if place not in left:
            del entries[place]
    if not entries:
        del document["track"]
    return {path: (tomlkit.dumps(document).rstrip("\n") + "\n").encode()}


def _document(project: Project, queue: str) -> tuple[Any, str]:
    import tomlkit

    names = queue_names(project)
    stem = next(each for each in names if load_queue(project, each).name == queue)
    path = project.upstream / f"{stem}.toml"
    return tomlkit.parse(path.read_text(encoding="utf-8")), f"upstream/{path.name}"


def _tracks(document: Any) -> Any:
    found = document.get("track", [])
    if not isinstance(found, list):
        raise PatchqError("`track` is not a list of tables", "write [[track]] with pr and why")
    return found
