"""A component's source with its own patches (`series/COMPONENT/`) on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from patchq.carry.canonical import applied
from patchq.errors import PatchqError
from patchq.gitstore.store import Store
from patchq.progress import SILENT, Progress
from patchq.queue import series as serieses
from patchq.queue.patch import Patch
from patchq.upstream.components import Component


@dataclass(frozen=True)
class Patched:
    """Trees of `store`: the release's own (`base`), and with `patches` on it."""

    store: Store
    base: str
    tree: str
    patches: tuple[Patch, ...]


@contextmanager
def patched(
    root: Path,
    component: Component,
    cache: Path,
    *,
    offline: bool = False,
    progress: Progress = SILENT,
) -> Iterator[Patched | None]:
    """The component's source, open as long as the block; None where it has no patches.

    Raises PatchqError where the release cannot be had, is not the one that was pinned, or a patch
    does not apply.
    """
    patches = serieses.read(root / "series" / component.name).applied
    if not patches:
        yield None
        return
    from patchq.upstream.archives import Archives

    if not component.index or not component.version:
        raise PatchqError(
            f"series/{component.name} has patches, and {component.name} no release on the index",
            "name its package and version in upstream/dependencies.toml",
        )
    archives = Archives(component.index, cache, offline=offline, wheels=True, progress=progress)
    with closing(archives):
        release = archives.release(component.version)
        known = dict(release.facts).get("sha256")
        if component.sha256 and known and known != component.sha256:
            raise PatchqError(
                f"the source of {component.index} {component.version} has the sha256 {known},"
                f" pinned is {component.sha256}",
                "do not use it before you know why; upstream/dependencies.toml has the pin",
            )
        tree = applied(archives.store, release, patches, progress).tree
        yield Patched(archives.store, release.tree, tree, patches)
