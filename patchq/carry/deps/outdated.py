"""`patchq deps outdated`: what is newer, what it would bring or break, which patches may go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from patchq.carry.deps.book import Book, address
from patchq.carry.deps.model import Newer, OutdatedReport
from patchq.carry.deps.read import catalog_of
from patchq.carry.deps.retire import retirements, versions
from patchq.carry.deps.surface import lacks
from patchq.carry.deps.universe import gather
from patchq.errors import PatchqError
from patchq.judge.needs import Solution, less, solve
from patchq.judge.requirement import differences
from patchq.progress import SILENT, Progress
from patchq.upstream import hub
from patchq.upstream.catalog import Catalog
from patchq.upstream.components import Component, Model, Template
from patchq.upstream.hardware import markers
from patchq.upstream.index import normalized


def outdated(
    book: Book, *, look: bool = False, offline: bool = False, progress: Progress = SILENT
) -> OutdatedReport:
    """Every part against its source. `look`: bring the newest releases and read their Python.

    What was not reached is said in the report, and the rest is there.
    """
    catalog = catalog_of(book, offline=offline, refresh=not offline, progress=progress)
    now = gather(book, catalog, offline=offline, progress=progress)
    before = solve(now.universe)
    parts: list[Newer] = []
    missing: list[str] = []
    newest: dict[str, str] = _base(book, catalog)
    for component in book.pins.components:
        if component.index and component.version:
            found = _component(book, catalog, component, before, offline, progress)
            if found.newer:
                newest[component.name] = found.newer[-1][0]
                if look:
                    findings, unseen = lacks(
                        book, component.name, newest[component.name], offline=offline
                    )
                    missing += unseen
                    found = replace(found, findings=findings)
            parts.append(found)
        else:
            parts.append(_in_git(component, component.git, component.commit, offline, missing))
    for kind, entry in book.pins.all:
        if isinstance(entry, Model | Template):
            parts.append(_in_hub(book, kind, entry, offline, missing))
    going = retirements(book, versions(book), newest, offline=offline, progress=progress)
    return OutdatedReport(now.base, tuple(parts), going, (*catalog.missing, *missing))


def _base(book: Book, catalog: Catalog) -> dict[str, str]:
    """The newest release of the queue's own upstream, where the index has it."""
    source = book.queue.config.sources[0]
    known = catalog.versions(normalized(source.value)) if source.kind == "index" else ()
    return dict.fromkeys(("base", book.queue.config.name), known[-1]) if known else {}


def _component(
    book: Book,
    catalog: Catalog,
    component: Component,
    before: Solution,
    offline: bool,
    progress: Progress,
) -> Newer:
    from packaging.version import Version

    package = normalized(component.index)
    dates = catalog.dates(package)
    later = [v for v in catalog.versions(package) if Version(v) > Version(component.version)]
    pinned = catalog.release(package, component.version)
    date = pinned.date if pinned else ""
    if not later:
        says = f"{component.version} was yanked" if pinned and pinned.yanked else ""
        return Newer("component", component.name, component.version, date, says=says)
    changed = {component.name: later[-1]}
    after = gather(book, catalog, changed=changed, offline=offline, progress=progress)
    return Newer(
        "component",
        component.name,
        component.version,
        date,
        tuple((each, dates.get(each, "")) for each in later),
        less(solve(after.universe), before),
        brought(book, catalog, component, later[-1]),
        says=f"{component.version} was yanked" if pinned and pinned.yanked else "",
    )


def brought(book: Book, catalog: Catalog, component: Component, version: str) -> tuple[str, ...]:
    """What another release asks for otherwise, a sentence each."""
    package = normalized(component.index)
    sides = [catalog.release(package, each) for each in (component.version, version)]
    was, will = (each.requires if each is not None else None for each in sides)
    if was is None or will is None:
        return ()
    return differences(was, will, markers(book.hardware))


def _in_hub(
    book: Book, kind: str, entry: Model | Template, offline: bool, missing: list[str]
) -> Newer:
    return _at(kind, entry.name, entry.revision, address(book.pins, entry), offline, missing)


def _in_git(
    component: Component, url: str, commit: str, offline: bool, missing: list[str]
) -> Newer:
    if not url:
        missing.append(f"{component.name} names neither a package nor a repository to ask")
        return Newer("component", component.name, component.pin, "")
    return _at("component", component.name, commit, url, offline, missing)


def _at(kind: str, name: str, revision: str, url: str, offline: bool, missing: list[str]) -> Newer:
    """A revision against the main branch of its repository."""
    heads: Mapping[str, str] = {}
    if offline:
        missing.append(f"{name}: its repository is not asked (--offline)")
    else:
        try:
            heads = hub.heads(url)
        except PatchqError as problem:
            missing.append(f"{name}: {problem.message}")
    head = heads.get(hub.HEAD, "")
    if not head or head.startswith(revision):
        return Newer(kind, name, revision, "", says="is the newest" if head else "")
    return Newer(kind, name, revision, "", ((head, ""),))
