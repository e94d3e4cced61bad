"""Lay a runner tree's Python over upstream's own wheel of the release: seconds, no compiler."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from patchq.build import metadata, plan
from patchq.build.plan import Changed, Overlay
from patchq.build.target import VERSION_FILE, Target
from patchq.build.wheelfile import Wheel, overlaid
from patchq.errors import PatchqError, ProofFailed
from patchq.gitstore.store import Store
from patchq.paths import named, show
from patchq.progress import SILENT, Progress

INFO_FILE = "vllm/patchq.json"
CAPABILITIES = b"patchq-capabilities.json"
"""At the runner tree's root: what its EXL3 loader reads. In the wheel it is below the package."""
CAPABILITIES_FILE = f"vllm/{CAPABILITIES.decode()}"


@dataclass(frozen=True)
class Wanted:
    """What is built: `series` is the queue's name, `number` the release's (None: of none).

    `release`: the base's version. A history names it by its tag, `v0.29.0`, which no wheel is
    called by: the v is taken off.
    """

    series: str
    release: str
    base: str
    tree: str
    number: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "release", self.release.removeprefix("v"))


@dataclass(frozen=True)
class Built:
    """The wheel, and what was found on the way.

    `beyond`: members of upstream's wheel that the source tree does not hold (compiled and vendored
    ones); `differing`: files that a foreign build has otherwise than the source, and keeps;
    `compiled`: what was compiled from the series' native code, by name, with its sha256.
    """

    path: Path
    sha256: str
    size: int
    version: str
    overlay: Overlay
    beyond: tuple[str, ...]
    differing: tuple[str, ...]
    compiled: Mapping[str, str] = field(default_factory=dict)


def lay(
    store: Store,
    wanted: Wanted,
    target: Target,
    wheel: Path,
    out: Path,
    progress: Progress = SILENT,
    instead: Mapping[str, str] = MappingProxyType({}),
    compiled: Mapping[str, Path] | None = None,
) -> Built:
    """Write the runner's wheel into the folder `out`; the file appears once it is whole.

    `instead`: requirements of upstream's wheel that are rewritten, by what they were. `compiled`:
    what the series' native code was compiled to, by name in the wheel (None: it was not). Raises
    PatchqError where the series needs a compiler, ProofFailed where upstream's wheel was not built
    from the base's source.
    """
    laid = sorted_changes(store, wanted)
    strange = laid.packaging if compiled is not None else (*laid.native, *laid.packaging)
    if strange:
        raise PatchqError(
            f"the series changes what has to be compiled or packaged anew: {named(strange)}",
            "this build lays files over upstream's wheel; build from source on a node instead",
        )
    with Wheel(wheel) as source:
        progress.step("comparing the wheel with the source")
        beyond, differing = _compare(store, wanted, target, source, laid)
        version = metadata.version(wanted.release, wanted.number, wanted.tree, target)
        info = f"{metadata.NAME}-{version}.dist-info"
        old = source.read(f"{source.info}/METADATA")
        fresh = {_text(path): store.objects.blob(oid) for path, oid in laid.laid.items()}
        fresh[f"{info}/METADATA"] = metadata.metadata(old, version, target, instead)
        fresh[INFO_FILE] = metadata.says(wanted.series, wanted.number, wanted.release, wanted.tree)
        capabilities = store.objects.lookup(wanted.tree, CAPABILITIES)
        if capabilities:
            fresh[CAPABILITIES_FILE] = store.objects.blob(capabilities.oid)
        fresh.update({name: path.read_bytes() for name, path in (compiled or {}).items()})
        made = out / metadata.filename(wheel.name, version)
        progress.step("writing the wheel")
        sha256 = overlaid(source, made, info, fresh, {_text(path) for path in laid.removed})
    digests = {name: _sha256(fresh[name]) for name in sorted(compiled or {})}
    return Built(made, sha256, made.stat().st_size, version, laid, beyond, differing, digests)


def sorted_changes(store: Store, wanted: Wanted) -> Overlay:
    """What the series changes, sorted by what it needs."""
    setup = store.objects.lookup(wanted.tree, b"setup.py")
    data = plan.package_data(store.objects.blob(setup.oid)) if setup else ()
    return plan.overlay(_changed(store, wanted), data)


def _changed(store: Store, wanted: Wanted) -> Iterator[Changed]:
    for each in store.changes(wanted.base, wanted.tree):
        if each.path == CAPABILITIES:
            continue  # put into the wheel by itself, under another name
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


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")
