"""What a source tree says that it needs: vLLM's requirements/*.txt, or pyproject.toml."""

from __future__ import annotations

import re
import tomllib

from patchq.gitstore.objects import TREE
from patchq.gitstore.store import Store

FILES = ("requirements/cuda.txt", "requirements.txt")
"""The first of these that is there counts; with what it includes."""
_DEPTH = 8


def of_tree(store: Store, tree: str) -> tuple[str, ...]:
    """The requirements (PEP 508) of `tree`, in their order; none where it says none."""
    for file in FILES:
        found = _file(store, tree, file, _DEPTH)
        if found is not None:
            return tuple(dict.fromkeys(found))
    data = _blob(store, tree, "pyproject.toml")
    try:
        declared = tomllib.loads((data or b"").decode("utf-8")).get("project", {})
        return tuple(text for text in declared.get("dependencies", ()) if is_requirement(str(text)))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, AttributeError):
        return ()


def _file(store: Store, tree: str, file: str, depth: int) -> list[str] | None:
    data = _blob(store, tree, file)
    if data is None or depth == 0:
        return None
    found: list[str] = []
    for raw in data.decode("utf-8", "replace").splitlines():
        line = re.sub(r"(?:^|\s)#.*", "", raw).strip()
        if line.startswith("-r"):
            inner = f"{file.rpartition('/')[0]}/{line[2:].strip()}".removeprefix("/")
            found += _file(store, tree, inner, depth - 1) or []
        elif line and not line.startswith("-") and is_requirement(line):
            found.append(line)
    return found


def _blob(store: Store, tree: str, path: str) -> bytes | None:
    entry = store.objects.lookup(tree, path.encode())
    return None if entry is None or entry.mode == TREE else store.objects.blob(entry.oid)


def is_requirement(text: str) -> bool:
    """Whether it is one (PEP 508): files and old releases have other things in their place."""
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        Requirement(text)
    except InvalidRequirement:
        return False
    return True
