"""Gather what `judge.needs` solves: the pins, what they ask for, and what that asks for.

What is decided (listed in the file, or pinned exactly by something that is) brings what it asks
for itself. Of everything else only the versions count, and only where two ask for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from patchq.carry.deps.book import Book
from patchq.carry.workspace import base_of, upstream_of
from patchq.judge.needs import Need, Release, Universe
from patchq.judge.requirement import exact, package_of, parsed, wanted
from patchq.progress import SILENT, Progress
from patchq.upstream.catalog import Catalog, Listed
from patchq.upstream.components import FILE, Component
from patchq.upstream.hardware import markers
from patchq.upstream.index import normalized
from patchq.upstream.requirements import of_tree

HAND = f"upstream/{FILE}"
FREE = 40
"""How many of the newest releases are tried where one is looked for."""
UNVERSIONED = "0"
"""The version of what has none: models, and what is pinned by a commit."""


@dataclass(frozen=True)
class Gathered:
    """A universe, what people call its base, and what was learned on the way."""

    universe: Universe
    base: str
    source_only: tuple[str, ...] = ()
    by_hand: tuple[str, ...] = ()
    """Components of which only the file says what they ask for."""
    listed: Mapping[str, Listed] = field(default_factory=dict)
    """The releases of the components that are on the index, by component."""


def gather(
    book: Book,
    catalog: Catalog,
    *,
    changed: Mapping[str, str] | None = None,
    free: Collection[str] = (),
    offline: bool = False,
    progress: Progress = SILENT,
) -> Gathered:
    """Everything that decides whether the pins fit.

    `changed` gives components other versions than the file; `free` are components (by name) whose
    version is looked for. What the catalog cannot say stands in its `missing`.
    """
    return _Gathering(book, catalog, changed or {}, free, offline, progress).run()


class _Gathering:
    def __init__(
        self,
        book: Book,
        catalog: Catalog,
        changed: Mapping[str, str],
        free: Collection[str],
        offline: bool,
        progress: Progress,
    ) -> None:
        self._book = book
        self._catalog = catalog
        self._changed = changed
        self._free = free
        self._offline = offline
        self._progress = progress
        self._environment = markers(book.hardware)
        self._names: dict[str, str] = {}
        self._pins: list[Need] = []
        self._releases: dict[str, dict[str, Release]] = {}
        self._source_only: list[str] = []
        self._listed: dict[str, Listed] = {}
        self._asked: set[tuple[str, str]] = set()

    def run(self) -> Gathered:
        base = self._base()
        by_hand: list[str] = []
        wanted_at: dict[str, list[str]] = {}
        for component in self._book.pins.components:
            if component.index and component.version:
                wanted_at[component.name] = self._candidates(component)
            else:
                by_hand.append(f"{component.name} {component.pin[:12]}")
                self._entry(component.name, component.pin[:12], component.requires)
        self._catalog.learn(
            (normalized(component.index), version)
            for component in self._book.pins.components
            for version in wanted_at.get(component.name, ())
        )
        for component in self._book.pins.components:
            for version in wanted_at.get(component.name, ()):
                self._component(component, version)
        for kind, entry in self._book.pins.all:
            if kind != "component":
                self._entry(entry.name, entry.pin[:12], entry.requires)
        self._hardware()
        self._close()
        self._share()
        universe = Universe(
            tuple(self._pins),
            {package: tuple(found.values()) for package, found in self._releases.items()},
            self._environment,
            self._book.waivers,
            self._names,
        )
        return Gathered(universe, base, tuple(self._source_only), tuple(by_hand), self._listed)

    def _base(self) -> str:
        """The queue's own base: what its wheel asks for, else what its tree says."""
        queue = self._book.queue
        source, release = queue.config.sources[0], queue.state.release.removeprefix("v")
        package, requires = normalized(queue.config.name), None
        if source.kind == "index":
            package = normalized(source.value)
            found = self._catalog.release(package, release)
            requires = found.requires if found else None
        if requires is None:
            with upstream_of(queue, offline=self._offline, progress=self._progress) as upstream:
                base = base_of(queue, upstream)
                requires = of_tree(upstream.store, base.tree)
        label = f"{queue.config.name} {release}"
        version = release if _is_version(release) else UNVERSIONED
        self._names[package] = queue.config.name
        self._releases[package] = {version: Release(package, version, requires, label)}
        self._pins.append(Need("the queue's base", f"{package}=={version}", chosen=True))
        return label

    def _candidates(self, component: Component) -> list[str]:
        if component.name not in self._free:
            return [self._changed.get(component.name, component.version)]
        return list(self._catalog.versions(normalized(component.index)))[-FREE:]

    def _component(self, component: Component, version: str) -> None:
        package = normalized(component.index)
        found = self._catalog.release(package, version)
        requires = (found.requires if found else None) or ()
        version = found.version if found else version
        label = f"{component.name} {version}"
        self._names[package] = component.name
        release = Release(
            package, version, (*requires, *component.requires), label, found.unfit if found else ""
        )
        self._releases.setdefault(package, {})[version] = release
        free = component.name in self._free
        pin = Need(HAND, package if free else f"{package}=={version}", chosen=True)
        if pin not in self._pins:
            self._pins.append(pin)
        if found is not None:
            self._listed[component.name] = found
            if found.source_only and not free:
                self._source_only.append(label)

    def _entry(self, name: str, pin: str, requires: tuple[str, ...]) -> None:
        """What is on no index: it has no version, and asks for what the file says."""
        package = normalized(name)
        self._names[package] = name
        label = f"{name} {pin}"
        self._releases[package] = {UNVERSIONED: Release(package, UNVERSIONED, requires, label)}
        self._pins.append(Need(HAND, package, chosen=True))

    def _hardware(self) -> None:
        hardware = self._book.hardware
        known = {"python": hardware.python, "cuda": hardware.cuda}
        for name, version in known.items():
            if version:
                self._releases[name] = {version: Release(name, version, (), f"{name} {version}")}
        self._entry("hardware", hardware.machine, hardware.requires)

    def _needs(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """(release's label, requirement, extras of the release that asks) of all that is known."""
        extras: dict[str, set[str]] = {}
        needs: list[tuple[str, str, tuple[str, ...]]] = []
        for _ in range(3):  # an extra may ask for an extra
            needs = [
                (release.label, text, tuple(parsed(text).extras))
                for package, found in self._releases.items()
                for release in found.values()
                for text in wanted(
                    release.requires, self._environment, ("", *sorted(extras.get(package, ())))
                )
            ]
            for _, text, more in needs:
                extras.setdefault(package_of(text), set()).update(more)
        return needs

    def _close(self) -> None:
        """Learn of all that is pinned exactly, and of what that pins, to the end."""
        pinned = set(self._names)
        while True:
            fresh = sorted(
                {
                    (package_of(text), exact(text))
                    for _, text, _ in self._needs()
                    if exact(text) and package_of(text) not in pinned | {"python", "cuda"}
                }
                - {(package, v) for package, found in self._releases.items() for v in found}
            )
            fresh = [each for each in fresh if each not in self._asked]
            if not fresh:
                return
            self._asked.update(fresh)
            self._catalog.learn(fresh)
            for package, version in fresh:
                found = self._catalog.release(package, version)
                if found is None:
                    continue
                label = f"{package} {found.version}"
                release = Release(package, found.version, found.requires or (), label, found.unfit)
                self._releases.setdefault(package, {})[found.version] = release

    def _share(self) -> None:
        """The versions of what two or more ask for, with bounds."""
        asked: dict[str, set[tuple[str, str]]] = {}
        for label, text, _ in self._needs():
            if parsed(text).specifier and package_of(text) not in self._releases:
                asked.setdefault(package_of(text), set()).add((label, text))
        shared = sorted(package for package, needs in asked.items() if len(needs) > 1)
        self._catalog.ask(shared)
        for package in shared:
            versions = self._catalog.versions(package)
            if versions:
                self._releases[package] = {v: Release(package, v) for v in versions}


def _is_version(text: str) -> bool:
    from packaging.version import InvalidVersion, Version

    try:
        Version(text)
    except InvalidVersion:
        return False
    return True
