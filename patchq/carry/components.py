"""The pinned components' own releases, opened where somebody asks for one of their modules."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path

from patchq.errors import PatchqError
from patchq.gitstore.store import Store
from patchq.progress import SILENT, Progress
from patchq.upstream.components import Component, read


@dataclass(frozen=True)
class Source:
    """The Python of a component's release: `name` with its version."""

    name: str
    store: Store
    tree: str


class Components:
    """What `upstream/dependencies.toml` pins, by what its Python is called when imported.

    `but` is left out: a component whose own queue it is. `changed` asks for other versions, and for
    these components alone. `missing`: a sentence for
    each release that was wanted and could not be had.
    """

    def __init__(
        self,
        upstream: Path,
        cache: Path,
        *,
        but: str = "",
        changed: Mapping[str, str] | None = None,
        offline: bool = False,
        progress: Progress = SILENT,
    ) -> None:
        found = [
            each for each in read(upstream) if each.index and each.version and each.name != but
        ]
        if changed is not None:
            found = [
                replace(each, version=changed[each.name], sha256="")
                for each in found
                if each.name in changed
            ]
        self._by_module = {module: each for each in found for module in each.modules}
        self._cache = cache
        self._offline = offline
        self._progress = progress
        self._opened: dict[str, Source | None] = {}
        self._stack = ExitStack()
        self.missing: list[str] = []

    @property
    def modules(self) -> tuple[str, ...]:
        return tuple(self._by_module)

    def source(self, module: str) -> Source | None:
        component = self._by_module.get(module)
        if component is None:
            return None
        if component.name not in self._opened:
            self._opened[component.name] = self._open(component)
        return self._opened[component.name]

    def close(self) -> None:
        self._stack.close()

    def _open(self, component: Component) -> Source | None:
        from patchq.upstream.archives import Archives

        archives = Archives(
            component.index,
            self._cache,
            offline=self._offline,
            wheels=True,
            progress=self._progress,
        )
        self._stack.enter_context(closing(archives))
        label = f"{component.name} {component.version}"
        try:
            release = archives.release(component.version)
        except PatchqError as problem:
            self.missing.append(f"{label} was not looked through: {problem.message}")
            return None
        known = dict(release.facts).get("sha256")
        if component.sha256 and known and known != component.sha256:
            self.missing.append(
                f"{label} was not looked through: its sha256 is {known}, not the pinned one"
            )
            return None
        return Source(label, archives.store, release.tree)
