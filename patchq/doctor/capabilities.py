"""What the runner's EXL3 loader reads, as the runner itself says in patchq-capabilities.json.

    {"schema": "patchq.capabilities/1", "exl3": {"codebooks": ["mcg"], "bits": [3, 4],
     "layouts": ["plain", "shared", "per-rank"], "ranks": [1, 2]}}

The patches that bring the loader write it at the tree's root and prove it against their code; a
build puts it into the wheel, below the package. `plain` (not cut) is read by one rank only, the
other layouts by as many ranks as the checkpoint was cut for. `forms`, if it is there, lists what
else is read: `signs` (scales as packed signs), `stacked` (experts in one tensor), `uneven` (ranks
with shares of different sizes).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from patchq.build.overlay import CAPABILITIES, CAPABILITIES_FILE
from patchq.build.wheelfile import Wheel
from patchq.carry.canonical import applied
from patchq.carry.workspace import Queue, base_of, upstream_of
from patchq.errors import PatchqError
from patchq.paths import show
from patchq.progress import SILENT, Progress
from patchq.upstream.releases import Upstream

SCHEMA = "patchq.capabilities/1"
FILE = CAPABILITIES.decode()
_MAX = 1 << 20
_HINT = "build the runner anew, from patches whose own checks pass"
_Value = TypeVar("_Value", str, int)


@dataclass(frozen=True)
class Capabilities:
    """`where`: which runner said so, for a sentence. `forms`: None where it does not say."""

    where: str
    codebooks: frozenset[str]
    bits: frozenset[int]
    layouts: frozenset[str]
    ranks: frozenset[int]
    forms: frozenset[str] | None = None


@dataclass(frozen=True)
class Unknown:
    """Why nothing is known about the loader, and what to do; both for a Check."""

    why: str
    remedy: str


Loader = Capabilities | Unknown

NOT_ASKED = Unknown(
    "no runner was named, and none is here",
    "name --artifact WHEEL, or run it in the repository that keeps the series",
)


def of_artifact(path: Path) -> Loader:
    """What a wheel says, or a folder in which one is installed (site-packages)."""
    try:
        raw = _installed(path) if path.is_dir() else _packed(path)
        return _missing(path.name) if raw is None else parse(raw, show(path.name))
    except PatchqError as problem:
        return Unknown(problem.message, problem.hint)


def of_queue(queue: Queue, *, offline: bool = False, progress: Progress = SILENT) -> Loader:
    """What the runner tree of the queue says: its base with the series on it."""
    try:
        with upstream_of(queue, offline=offline, progress=progress) as upstream:
            tree = _tree(queue, upstream, progress)
            where = f"the runner tree {tree[:12]}"
            entry = upstream.store.objects.lookup(tree, CAPABILITIES)
            if entry is None:
                return _missing(where)
            return parse(upstream.store.objects.blob(entry.oid), where)
    except PatchqError as problem:
        return Unknown(problem.message, problem.hint)


def _tree(queue: Queue, upstream: Upstream, progress: Progress) -> str:
    """The runner tree, in the store: it may be recorded and yet be new to this machine."""
    recorded = queue.state.runner_tree if queue.is_proved else ""
    if recorded:
        try:
            upstream.store.objects.tree(recorded)
            return recorded
        except PatchqError:
            pass
    base = base_of(queue, upstream)
    return applied(upstream.store, base, queue.series.applied, progress).tree


def _installed(folder: Path) -> bytes | None:
    try:
        with (folder / CAPABILITIES_FILE).open("rb") as file:
            return file.read(_MAX + 1)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise PatchqError(
            f"{CAPABILITIES_FILE} in {show(folder.name)} cannot be read: {problem.strerror}", _HINT
        ) from problem


def _packed(path: Path) -> bytes | None:
    if not path.is_file():
        raise PatchqError(f"there is no file {path}", "name a wheel that `patchq build` made")
    with Wheel(path) as wheel:
        info = wheel.members.get(CAPABILITIES_FILE)
        if info is None:
            return None
        if info.file_size > _MAX:
            raise PatchqError(f"{CAPABILITIES_FILE} has {info.file_size} bytes", _HINT)
        return wheel.read(CAPABILITIES_FILE)


def _missing(where: str) -> Unknown:
    return Unknown(
        f"{show(where)} holds no {FILE}",
        "carry the patches that bring the EXL3 loader (docs/runner.md), or ask who built it",
    )


def parse(raw: bytes, where: str) -> Capabilities:
    """Raises PatchqError for what is no such file. A runner without `exl3` in it reads none."""
    try:
        if len(raw) > _MAX:
            raise ValueError
        data = json.loads(raw)
        if data["schema"] != SCHEMA:
            raise ValueError
        exl3 = data.get("exl3", {})
        return Capabilities(
            where,
            _set(exl3, "codebooks", str),
            _set(exl3, "bits", int),
            _set(exl3, "layouts", str),
            _set(exl3, "ranks", int),
            _set(exl3, "forms", str) if "forms" in exl3 else None,
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise PatchqError(f"{FILE} in {where} is none ({SCHEMA})", _HINT) from None


def _set(exl3: Any, key: str, kind: type[_Value]) -> frozenset[_Value]:
    values = exl3.get(key, [])
    if not isinstance(values, list) or any(type(each) is not kind for each in values):
        raise ValueError
    return frozenset(values)
