"""Lay a runner tree's Python over upstream's own wheel of the release: seconds, no compiler."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from patchq.build import metadata, plan
from patchq.build.plan import Changed, Overlay
from patchq.build.target import VERSION_FILE, Target
from patchq.build.wheelfile import CHUNK, Wheel, Writer
from patchq.errors import PatchqError, ProofFailed
from patchq.gitstore.store import Store
from patchq.paths import show
from patchq.progress import SILENT, Progress

INFO_FILE = "vllm/patchq.json"


@dataclass(frozen=True)
class Wanted:
    """What is built: `series` is the queue's name, `number` the release's (None: of none)."""

    series: str
    release: str
    base: str
    tree: str
    number: int | None = None


@dataclass(frozen=True)
class Built:
    """The wheel, and what was found on the way.

    `beyond`: members of upstream's wheel that the source tree does not hold (compiled and vendored
    ones); `differing`: files that a foreign build has otherwise than the source, and keeps.
    """

    path: Path
    sha256: str
    size: int
    version: str
    overlay: Overlay
    beyond: tuple[str, ...]
    differing: tuple[str, ...]


def lay(
    store: Store,
    wanted: Wanted,
    target: Target,
    wheel: Path,
    out: Path,
    progress: Progress = SILENT,
) -> Built:
    """Write the runner's wheel into the folder `out`; the file appears once it is whole.

    Raises PatchqError where the series needs a compiler, ProofFailed where upstream's wheel was
    not built from the base's source.
    """
    setup = store.objects.lookup(wanted.tree, b"setup.py")
    data = plan.package_data(store.objects.blob(setup.oid)) if setup else ()
    laid = plan.overlay(_changed(store, wanted), data)
    if laid.native or laid.packaging:
        which = ", ".join(show(path) for path in (*laid.native, *laid.packaging)[:5])
        raise PatchqError(
            f"the series changes what has to be compiled or packaged anew: {which}",
            "this build lays Python over upstream's wheel; build from source on a node instead",
        )
    with Wheel(wheel) as source:
        progress.step("comparing the wheel with the source")
        beyond, differing = _compare(store, wanted, target, source, laid)
        version = metadata.version(wanted.release, wanted.number, wanted.tree, target)
        info = f"{metadata.NAME}-{version}.dist-info"
        names = {name: _renamed(name, source.info, info) for name in source.members}
        for path in laid.removed:
            names.pop(_text(path), None)
        for part in ("RECORD", "METADATA"):
            del names[f"{source.info}/{part}"]
        old = source.read(f"{source.info}/METADATA")
        fresh = {_text(path): store.objects.blob(oid) for path, oid in laid.laid.items()}
        fresh[f"{info}/METADATA"] = metadata.metadata(old, version, target)
        fresh[INFO_FILE] = metadata.says(wanted.series, wanted.number, wanted.release, wanted.tree)
        out.mkdir(parents=True, exist_ok=True)
        made = out / metadata.filename(wheel.name, version)
        beside = made.with_name(f".{made.name}.{os.getpid()}")
        progress.step("writing the wheel")
        try:
            Writer(source, beside, info).write(names, fresh)
            sha256 = _sha256(beside)
            os.replace(beside, made)
        finally:
            beside.unlink(missing_ok=True)
    return Built(made, sha256, made.stat().st_size, version, laid, beyond, differing)


def _changed(store: Store, wanted: Wanted) -> Iterator[Changed]:
    for each in store.changes(wanted.base, wanted.tree):
        old = store.objects.lookup(wanted.base, each.path)
        new = store.objects.lookup(wanted.tree, each.path)
        yield Changed(each.path, old.oid if old else None, new.oid if new else None)


def _compare(
    store: Store, wanted: Wanted, target: Target, wheel: Wheel, laid: Overlay
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Members beyond the source, and those that differ from it."""
    beyond: list[str] = []
    differing: list[str] = []
    for name in wheel.members:
        if name.startswith(f"{wheel.info}/"):
            continue
        path = name.encode("utf-8", "surrogateescape")
        entry = store.objects.lookup(wanted.base, path)
        if entry is None:
            beyond.append(name)
        elif path != VERSION_FILE and store.objects.blob(entry.oid) != wheel.read(name):
            differing.append(name)
    touched = [name for name in differing if name.encode("utf-8", "surrogateescape") in laid.laid]
    strange = touched or ([] if target.foreign else differing)
    if strange:
        raise ProofFailed(
            f"{wheel.path.name} was not built from the source of {wanted.release}:"
            f" {show(strange[0])} differs ({len(differing)} of {len(wheel.members)} files do)",
            "the series changes that file" if touched else "take the release's own wheel",
        )
    missing = [
        path for path in laid.removed if _text(path) not in wheel.members and path != VERSION_FILE
    ]
    if missing:
        raise ProofFailed(
            f"{wheel.path.name} has no {show(missing[0])}, which the series removes",
            "take the release's own wheel",
        )
    return tuple(beyond), tuple(differing)


def _renamed(name: str, old: str, new: str) -> str:
    return f"{new}{name[len(old) :]}" if name.startswith(f"{old}/") else name


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def _sha256(path: Path) -> str:
    total = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            total.update(chunk)
    return total.hexdigest()
