"""The runner's other components: found on the index, verified, and those with patches laid anew.

A component is taken as it is published, or its own patches (`series/COMPONENT/`) are laid over its
wheel by the means that vLLM's is made with. What has no wheel for the target is brought, verified,
and has to be built there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from patchq.build import metadata, requirements
from patchq.build.components_plan import Placed, place
from patchq.build.plan import PACKAGING, Changed
from patchq.build.target import Target
from patchq.build.wheelfile import Wheel, overlaid
from patchq.errors import PatchqError
from patchq.gitstore.store import Store
from patchq.paths import named, show
from patchq.progress import SILENT, Progress
from patchq.queue.patch import Patch
from patchq.upstream import metadata as metadatas
from patchq.upstream.components import Component
from patchq.upstream.hardware import Fit
from patchq.upstream.pages import Dist, measured


class Grown(Protocol):
    """A component's source before (`base`) and after its own patches, as trees of `store`."""

    @property
    def store(self) -> Store: ...
    @property
    def base(self) -> str: ...
    @property
    def tree(self) -> str: ...
    @property
    def patches(self) -> tuple[Patch, ...]: ...


Grow = Callable[[Component], AbstractContextManager[Grown | None]]
"""The component's source with its own patches, None where it has none."""


@dataclass(frozen=True)
class Wheeled:
    """A wheel with a component's own patches: `laid` and `removed` are its members."""

    path: Path
    sha256: str
    size: int
    version: str
    tree: str
    patches: tuple[Patch, ...]
    laid: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """What a component is in a build.

    `kind`: "published" (`source` is the wheel that the index has), "patched" (`wheel` was made from
    it), "source" (brought to `brought`, to be built on the target), "commit" (on no index: to be
    built from its repository). `licence` is what the wheel says of itself (SPDX, "" unknown).
    """

    component: Component
    kind: str
    source: Dist | None = None
    wheel: Wheeled | None = None
    brought: Path | None = None
    licence: str = ""


def parts(
    target: Target,
    components: Iterable[Component],
    grow: Grow,
    out: Path,
    cache: Path,
    *,
    offline: bool = False,
    progress: Progress = SILENT,
) -> tuple[Part, ...]:
    """Each component that belongs to the target; what is made comes into the folder `out`.

    Raises PatchqError where one cannot be had or is not what was pinned, ProofFailed where its
    wheel was not built from its source.
    """
    return tuple(
        _part(each, target, grow, out, cache, offline, progress)
        for each in components
        if target.gpu
    )


def _part(
    component: Component,
    target: Target,
    grow: Grow,
    out: Path,
    cache: Path,
    offline: bool,
    progress: Progress,
) -> Part:
    if not component.index or not component.version:
        with grow(component):  # refuses patches that nothing is there to be laid over
            return Part(component, "commit")
    file = choose(component, target, cache, offline=offline, progress=progress)
    path = bring(file, cache, offline=offline, progress=progress)
    with grow(component) as grown:
        if not file.wheel:
            if grown is not None:
                raise PatchqError(
                    f"{component.name} {component.version} has patches of its own, and no wheel for"
                    f" {target.name} to lay them over",
                    "build it from source on the target, with `patchq export` for its patches",
                )
            kept = out / file.filename
            out.mkdir(parents=True, exist_ok=True)
            beside = kept.with_name(f".{kept.name}.{os.getpid()}")
            shutil.copyfile(path, beside)
            beside.replace(kept)
            return Part(component, "source", file, brought=kept)
        licence = metadatas.parse(metadatas.inside(path), path.name).licence
        if grown is None:
            return Part(component, "published", file, licence=licence)
        progress.step(f"laying the patches of {component.name}")
        made = lay(component, grown, target, path, out)
        return Part(component, "patched", file, made, licence=licence)


def choose(
    component: Component,
    target: Target,
    cache: Path,
    *,
    offline: bool = False,
    progress: Progress = SILENT,
) -> Dist:
    """The file of the pinned release that the target takes: a wheel that fits, else its source.

    Raises PatchqError where the index has no such, or none of the release's files has the pinned
    sha256.
    """
    from patchq.upstream import index as indexes
    from patchq.upstream import pipconf

    progress.step(f"asking the package index for {component.index}")
    answer = indexes.look_up(
        component.index, pipconf.read_settings(), cache / "index", offline=offline
    )
    files = [measured(each) for each in answer.dists if each.version == component.version]
    if component.sha256 and component.sha256 not in {each.sha256 for each in files}:
        there = ", ".join(each.filename for each in files) or "none at all"
        raise PatchqError(
            f"no file of {component.index} {component.version} on the index has the pinned sha256"
            f" {component.sha256}; there is {there}",
            "do not use it before you know why; upstream/dependencies.toml has the pin",
        )
    best = Fit(target.hardware).best(files)
    if best is None:
        raise PatchqError(
            f"the index has no file of {component.index} {component.version} for {target.name}",
            "take another version, or another index",
        )
    return best


def bring(file: Dist, cache: Path, *, offline: bool, progress: Progress = SILENT) -> Path:
    """The file, downloaded once and verified. It stays in the cache."""
    from patchq.upstream import download, pipconf

    folder = cache / "wheels"
    with download.alone(file, folder, progress):
        return download.fetch(file, folder, pipconf.read_settings(), progress, offline=offline)


def lay(component: Component, grown: Grown, target: Target, wheel: Path, out: Path) -> Wheeled:
    """The component's wheel with its patches, in the folder `out`.

    Raises PatchqError where they need a compiler, ProofFailed where the wheel was not built from
    the source that they were made for.
    """
    objects = grown.store.objects
    with Wheel(wheel) as source:
        placed = place(
            list(_changed(grown)),
            component.modules,
            source.members.keys(),
            source.read,
            objects.blob,
            wheel.name,
        )
        old = source.read(f"{source.info}/METADATA")
        asked = metadatas.parse(old, wheel.name).requires
        gone = requirements.aside(component, requirements.relaxed_by(grown.patches))
        instead = requirements.instead(asked, gone)
        _require_layable(component, placed, relaxing=bool(instead))
        version = metadata.version(component.version, None, grown.tree, target)
        name = wheel.name.partition("-")[0]
        info = f"{name}-{version}.dist-info"
        fresh = {member: objects.blob(oid) for member, oid in placed.laid.items()}
        fresh[f"{info}/METADATA"] = metadata.metadata(
            old, version, target, instead, name=component.index
        )
        told = metadata.says(component.name, None, component.version, grown.tree)
        fresh[f"{info}/patchq.json"] = told
        made = out / metadata.filename(wheel.name, version, name)
        sha256 = overlaid(source, made, info, fresh, placed.removed)
    return Wheeled(
        made,
        sha256,
        made.stat().st_size,
        version,
        grown.tree,
        grown.patches,
        tuple(sorted(placed.laid)),
        placed.removed,
    )


def _changed(grown: Grown) -> Iterator[Changed]:
    for each in grown.store.changes(grown.base, grown.tree):
        old = grown.store.objects.lookup(grown.base, each.path)
        new = grown.store.objects.lookup(grown.tree, each.path)
        yield Changed(each.path, old.oid if old else None, new.oid if new else None)


def _require_layable(component: Component, placed: Placed, *, relaxing: bool) -> None:
    """`relaxing`: its patches say what they set aside, so METADATA has what the packaging's
    change comes to.
    """
    strange = [path for path in placed.homeless if not (relaxing and path in PACKAGING)]
    if strange:
        raise PatchqError(
            f"series/{component.name} changes what its wheel does not hold as it is:"
            f" {named(strange)}",
            "such a change needs a build from source; take it out, or build the component itself",
        )
    if not placed.laid and not placed.removed and not relaxing:
        raise PatchqError(
            f"series/{component.name} changes nothing that {show(component.index)}'s wheel holds",
            "take the patches out, or correct `import` in upstream/dependencies.toml",
        )
