"""`patchq deps list` and `check`: what the runner is made of, and whether it fits at once."""

from __future__ import annotations

from dataclasses import replace

from patchq.carry.deps.book import Book, origin
from patchq.carry.deps.model import CheckReport, ListReport, Part
from patchq.carry.deps.universe import UNVERSIONED, Gathered, gather
from patchq.config import cache_dir
from patchq.judge.needs import Solution, fitting, solve
from patchq.progress import SILENT, Progress
from patchq.upstream.catalog import Catalog
from patchq.upstream.components import Model, Template
from patchq.upstream.index import normalized


def listed(book: Book) -> ListReport:
    """The file's entries, with the patches that each has of its own."""
    parts = []
    for kind, entry in book.pins.all:
        queue = book.queues.get(entry.name)
        detail: dict[str, str] = {}
        if isinstance(entry, Model) and entry.block_size is not None:
            detail["block_size"] = str(entry.block_size)
        if isinstance(entry, Template):
            detail["file"] = entry.file
        parts.append(
            Part(
                kind,
                entry.name,
                entry.pin,
                origin(entry),
                entry.why,
                entry.sha256,
                tuple(patch.name for patch in queue.series.all) if queue else (),
                entry.requires,
                detail,
            )
        )
    state = book.queue.state
    return ListReport(book.queue.config.name, state.release, book.pins.hardware, tuple(parts))


def catalog_of(
    book: Book, *, offline: bool = False, refresh: bool = False, progress: Progress = SILENT
) -> Catalog:
    return Catalog(cache_dir(), book.hardware, offline=offline, refresh=refresh, progress=progress)


def check(book: Book, *, offline: bool = False, progress: Progress = SILENT) -> CheckReport:
    """Whether all pins, the base and the hardware go together; where not, what would.

    Raises PatchqError where the file does not say what the hardware is.
    """
    catalog = catalog_of(book, offline=offline, progress=progress)
    found = gather(book, catalog, offline=offline, progress=progress)
    solution = solve(found.universe)
    missing = catalog.missing
    solution = replace(solution, versions=packages(solution))
    would_fit = _would_fit(book, catalog, found, solution, offline) if not solution.ok else {}
    return CheckReport(
        found.base, book.hardware, solution, found.source_only, found.by_hand, missing, would_fit
    )


def packages(solution: Solution) -> dict[str, str]:
    """The chosen releases of packages: what has no version of its own is left out."""
    apart = {"python", "cuda"}
    versions = sorted(solution.versions.items())
    return {name: v for name, v in versions if v != UNVERSIONED and name not in apart}


def _would_fit(
    book: Book, catalog: Catalog, found: Gathered, solution: Solution, offline: bool
) -> dict[str, str]:
    """Versions of the components that contradict with which all would fit; none if none do."""
    torn = {each.package for each in solution.conflicts}
    torn |= {
        package
        for each in solution.conflicts
        for need in each.needs
        for package, releases in found.universe.releases.items()
        if need.of == releases[0].label
    }
    free = {
        component.name: normalized(component.index)
        for component in book.pins.components
        if component.index and component.version and normalized(component.index) in torn
    }
    if not free:
        return {}
    wider = gather(book, catalog, free=frozenset(free), offline=offline)
    chosen = fitting(wider.universe)
    return {name: chosen[package] for name, package in free.items() if package in chosen}
