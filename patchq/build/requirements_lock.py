"""Lock a target's environment: upstream's wheel and the components, resolved on the index."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from patchq.build import components, metadata, requirements
from patchq.build.requirements import Locked, Rewritten
from patchq.build.run import find_wheel
from patchq.build.target import Target
from patchq.errors import PatchqError
from patchq.progress import SILENT, Progress
from patchq.upstream import metadata as metadatas
from patchq.upstream import resolver
from patchq.upstream.components import Pins


@dataclass(frozen=True)
class Requirements:
    """A lock that was made: its bytes, how many packages stand in it, and what was decided.

    `left_out` are components whose wheels the build makes itself.
    """

    target: str
    data: bytes
    count: int
    rewritten: tuple[Rewritten, ...]
    left_out: tuple[str, ...]


def make(
    root: Path,
    target: Target,
    release: str,
    pins: Pins,
    patched: Collection[str],
    cache: Path,
    *,
    upgrade: bool = False,
    progress: Progress = SILENT,
) -> Requirements:
    """Resolve and lock. `patched`: the names of components that have patches of their own.

    Versions that an older lock has are kept where they fit, unless `upgrade`. Raises PatchqError
    where nothing fits together, or the index is not reached.
    """
    wheel = find_wheel(target, release, cache, progress=progress)
    own = metadata.metadata(metadatas.raw(wheel, cache, progress=progress), release, target)
    requires = metadatas.parse(own, wheel.filename).requires
    concerning = requirements.concerning(target, pins.components)
    relaxed = pins.relaxed if target.gpu else ()
    changes = requirements.rewritten(requires, concerning, relaxed)
    instead = {}
    for each in concerning:
        file = components.choose(each, target, cache, progress=progress)
        gone = requirements.aside(each, relaxed)
        if gone and file.wheel:
            asked = metadatas.of(file, cache, progress=progress).requires
            release_of = requirements.normal(each.index), each.version
            instead[release_of] = requirements.without(asked, gone)
    found = resolver.resolve(
        requirements.inputs(
            requires, changes, concerning, requirements.needed(target, pins.hardware)
        ),
        target.hardware,
        cache,
        instead=instead,
        keep=() if upgrade else _kept(root / "upstream" / requirements.file_name(target.name)),
        progress=progress,
    )
    left_out = [requirements.normal(each.index) for each in concerning if each.name in patched]
    packages = [Locked(each.name, each.version, each.hashes) for each in found]
    lines = requirements.told(target, release, pins, patched)
    data = requirements.write(lines, packages, left_out)
    count = len({each.name for each in packages} - set(left_out))
    return Requirements(target.name, data, count, changes, tuple(left_out))


def _kept(path: Path) -> tuple[str, ...]:
    try:
        found = requirements.parse(path.read_bytes(), path.name)
    except (FileNotFoundError, PatchqError):
        return ()  # one that is damaged is made anew
    return tuple(f"{each.name}=={each.version}" for each in found.packages)
