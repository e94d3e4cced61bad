"""Take from this node what was installed: what is ours by its name, and nothing else."""

from __future__ import annotations

import os
import shutil
from typing import Any

from patchq.cluster.there import files, weights

OURS = (
    *("current", "previous", ".current", ".previous"),
    *("releases", "environments", "requirements", "packages", "artifacts", "templates"),
    *("run", "logs", "lock"),
)


def look(asked: dict[str, Any]) -> dict[str, Any]:
    """What `remove` would take: folder, size in bytes, models; and what is `other`, not ours."""
    folder, models = asked["folder"], weights.folder(asked)
    ours = [name for name in files.names(folder) if name in OURS]
    fetched = [place for place in mine(models, asked) if is_fetched(models, place)]
    paths = [os.path.join(folder, name) for name in ours]
    paths += [os.path.join(models, place + end) for place in fetched for end in ("", ".part")]
    return {
        "folder": folder if ours else None,
        "size": sum(map(size, paths)),
        "models": fetched,
        "other": [name for name in files.names(folder) if name not in OURS],
    }


def remove(asked: dict[str, Any]) -> dict[str, Any]:
    """Do it; what `look` says of the rest."""
    folder, models = asked["folder"], weights.folder(asked)
    for place in mine(models, asked):
        path = os.path.join(models, place)
        gone(f"{path}.part")
        if is_fetched(models, place) or os.path.islink(path):
            gone(path)
        # The note last: what is interrupted is found again by it.
        os.unlink(weights.marker(models, place))
    for name in OURS:
        gone(os.path.join(folder, name))
    for empty in (folder, models):
        try:
            os.rmdir(empty)
        except OSError:
            continue
    return look(asked)


def mine(models: str, asked: dict[str, Any]) -> list[str]:
    return [] if asked["keep_models"] else weights.kept(models)


def is_fetched(models: str, place: str) -> bool:
    said = weights.note(models, place)
    return said is not None and said.get("fetched") is True


def gone(path: str) -> None:
    """Remove it, whatever it is; a link, not what it leads to."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def size(path: str) -> int:
    if os.path.islink(path) or not os.path.isdir(path):
        return os.lstat(path).st_size if os.path.lexists(path) else 0
    return sum(size(each.path) for each in os.scandir(path))
