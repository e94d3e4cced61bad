"""Models on this node, each below the folder `models` under a name that says its revision:

NAME-REVISION/                what was fetched, or a link to a copy that was there
.patchq-NAME-REVISION.json    where it is from, its files (none: it is under way), who fetched it
NAME-REVISION.part/           what is under way
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from typing import Any

SCHEMA = "patchq.weights/1"


def have(asked: dict[str, Any]) -> dict[str, Any] | None:
    """What was noted of `place`, where all its files are there in their sizes."""
    models = folder(asked)
    said = note(models, asked["place"])
    if said is None or not said["files"]:
        return None
    place = os.path.join(models, asked["place"])
    try:
        right = all(os.path.getsize(os.path.join(place, n)) == size for n, size in said["files"])
    except (OSError, TypeError, ValueError):
        return None
    return said if right else None


def differs(asked: dict[str, Any]) -> str | None:
    """The first of `files` (path, size, sha256 or None, git's blob) that `path` has otherwise."""
    place = whole(asked["path"])
    files = asked["files"]
    for name, size, _, _ in files:
        try:
            if os.path.getsize(os.path.join(place, name)) != size:
                return str(name)
        except OSError:
            return str(name)
    for name, size, sha256, blob in files:
        if digest(os.path.join(place, name), size, sha256 is not None) != (sha256 or blob):
            return str(name)
    return None


def digest(path: str, size: int, plain: bool) -> str:
    found = hashlib.sha256() if plain else hashlib.sha1(b"blob %d\0" % size)  # noqa: S324 - git's
    with open(path, "rb") as file:
        for part in iter(lambda: file.read(1 << 20), b""):
            found.update(part)
    return found.hexdigest()


def take(asked: dict[str, Any]) -> None:
    """Make `place` of what is whole: of the copy `copy`, or of the .part beside it."""
    models = folder(asked)
    os.makedirs(models, exist_ok=True)
    place = os.path.join(models, asked["place"])
    if os.path.islink(place):
        os.unlink(place)
    elif os.path.isdir(place):
        shutil.rmtree(place)
    if asked["copy"] is None:
        os.rename(f"{place}.part", place)
    else:
        os.symlink(whole(asked["copy"]), place)
    found = [[name, size] for name, size, _, _ in asked["files"]]
    write(models, asked, found, fetched=asked["copy"] is None)


def begin(asked: dict[str, Any]) -> dict[str, Any]:
    """Note that `place` is under way, in `path`; bytes `free` there, `size` of what is there."""
    models = folder(asked)
    part = os.path.join(models, f"{asked['place']}.part")
    os.makedirs(part, exist_ok=True)
    if not os.path.exists(marker(models, asked["place"])):
        write(models, asked, [], fetched=True)
    there = sum(
        os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(part) for name in names
    )
    return {"path": part, "free": shutil.disk_usage(models).free, "size": there}


def write(models: str, asked: dict[str, Any], found: list[Any], *, fetched: bool) -> None:
    said = {
        "schema": SCHEMA,
        "repository": asked["repository"],
        "revision": asked["revision"],
        "files": found,
        "fetched": fetched,
    }
    beside = f"{marker(models, asked['place'])}.new"
    with open(beside, "w", encoding="utf-8") as file:
        json.dump(said, file)
    os.replace(beside, marker(models, asked["place"]))


def kept(models: str) -> list[str]:
    """The places that were noted here, sorted."""
    try:
        names = os.listdir(models)
    except OSError:
        return []
    return sorted(n[8:-5] for n in names if n.startswith(".patchq-") and n.endswith(".json"))


def note(models: str, place: str) -> dict[str, Any] | None:
    try:
        with open(marker(models, place), encoding="utf-8") as file:
            said = json.load(file)
    except (OSError, ValueError):
        return None
    return said if isinstance(said, dict) and said.get("schema") == SCHEMA else None


def marker(models: str, place: str) -> str:
    return os.path.join(models, f".patchq-{place}.json")


def folder(asked: dict[str, Any]) -> str:
    return whole(asked["models"])


def whole(path: str) -> str:
    """A path that may begin at home."""
    return os.path.join(os.path.expanduser("~"), path)


def indexed(asked: dict[str, Any]) -> dict[str, Any] | None:
    """The sha256 of the file `index` in `path`, and all files there with their sizes."""
    place = whole(asked["path"])
    try:
        with open(os.path.join(place, asked["index"]), "rb") as file:
            sha256 = hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return None
    found = []
    for at, _, names in os.walk(place):
        for name in sorted(names):
            path = os.path.join(at, name)
            found.append([os.path.relpath(path, place), os.path.getsize(path), None, None])
    return {"sha256": sha256, "files": found}
