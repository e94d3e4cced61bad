"""`patchq deps update`: another version of a part, the way that a sync goes.

Observe (the index, the archive and its sha256), judge and carry the component's own patches, prove,
record: the pin, the series and the state in one entry of the journal.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace

from patchq.carry import journal, pins, session
from patchq.carry.deps.book import Book, address, origin
from patchq.carry.deps.model import UpdateReport
from patchq.carry.deps.outdated import brought
from patchq.carry.deps.read import catalog_of
from patchq.carry.deps.relax import set_aside
from patchq.carry.deps.retire import retirements, versions
from patchq.carry.deps.surface import lacks
from patchq.carry.deps.universe import Gathered, gather
from patchq.carry.report import Check, Proof, SyncReport
from patchq.carry.resume import begin
from patchq.carry.step import attempt
from patchq.carry.workspace import Queue, base_of, upstream_of
from patchq.config import cache_dir
from patchq.errors import PatchqError
from patchq.judge.needs import Solution, less, solve
from patchq.progress import SILENT, Progress
from patchq.upstream import hub
from patchq.upstream.archives import Archives
from patchq.upstream.catalog import Catalog
from patchq.upstream.components import Component, Model, Relaxed, Template
from patchq.upstream.history import History
from patchq.upstream.index import normalized
from patchq.upstream.releases import Release

Changes = Mapping[str, bytes | None]


@dataclass(frozen=True)
class Wanted:
    """What was asked for. `why`: go on in spite of what contradicts, and why ("" stops there).

    `sha256`: of a model, draft or template, where it is known.
    """

    name: str
    version: str
    why: str = ""
    sha256: str = ""
    dry_run: bool = False
    offline: bool = False


def update(book: Book, wanted: Wanted, progress: Progress = SILENT) -> UpdateReport:
    """Move the pin `wanted.name`. The caller holds the lock.

    Nothing is written where it contradicts what others ask for, a patch asks, or a proof fails; a
    patch that asks opens a session of the component's queue. Raises PatchqError for a part or
    release that is not there, Incomplete where the source is not reached.
    """
    kind, entry = book.pins.find(wanted.name)
    if not isinstance(entry, Component):
        return _in_hub(book, kind, entry, wanted)
    if wanted.sha256:
        raise PatchqError(
            f"{entry.name} is verified against its own source", "--sha256 is for what the hub has"
        )
    if not entry.index:
        return _component(book, entry, wanted, _Seen(wanted.version), progress)
    catalog = catalog_of(book, offline=wanted.offline, progress=progress)
    return _component(book, entry, wanted, _seen(book, catalog, entry, wanted, progress), progress)


@dataclass(frozen=True)
class _Seen:
    """What the constraints say of the new version."""

    version: str
    solution: Solution | None = None
    relaxed: tuple[Relaxed, ...] = ()
    brings: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def stops(self) -> bool:
        return self.solution is not None and not self.solution.ok and not self.relaxed


def _seen(
    book: Book, catalog: Catalog, component: Component, wanted: Wanted, progress: Progress
) -> _Seen:
    package = normalized(component.index)
    version = wanted.version.removeprefix("v")
    if version == "latest":
        known = catalog.versions(package)
        version = known[-1] if known else component.version
    found = catalog.release(package, version)
    version = found.version if found else version

    def gathered(changed: Mapping[str, str]) -> Gathered:
        return gather(book, catalog, changed=changed, offline=wanted.offline, progress=progress)

    after = gathered({component.name: version})
    solution = less(solve(after.universe), solve(gathered({}).universe))
    if version == component.version:
        # The pin stands: whatever contradicts it may still be set aside.
        solution = solve(after.universe)
    relaxed: tuple[Relaxed, ...] = ()
    if wanted.why and not solution.ok:
        relaxed = set_aside(after, solution, component.name, wanted.why)
    return _Seen(
        version, solution, relaxed, brought(book, catalog, component, version), catalog.missing
    )


def _component(
    book: Book, component: Component, wanted: Wanted, seen: _Seen, progress: Progress
) -> UpdateReport:
    report = UpdateReport(
        "component",
        component.name,
        component.pin,
        seen.version,
        origin(component),
        "",
        seen.solution if not seen.relaxed else None,
        relaxed=tuple(f"{each.of}: {each.requirement}" for each in seen.relaxed),
        brings=seen.brings,
        dry_run=wanted.dry_run,
        missing=seen.missing,
    )
    if seen.stops:
        return report
    queue = book.queues.get(component.name)
    if queue is not None:
        return _carried(book, queue, component, wanted, seen, report, progress)
    release = _brought(component, seen.version, wanted, progress)
    values = pins.pin_of(release, index=bool(component.index))
    changes = pins.edited(book.project, "component", component.name, values, seen.relaxed)
    report = replace(report, proof=Proof((_verified(release),)))
    return _finished(book, report, release, values, changes, wanted, progress)


def _brought(component: Component, version: str, wanted: Wanted, progress: Progress) -> Release:
    """The release in the store: downloaded, its sha256 compared with the index's."""
    if component.index:
        archives = Archives(
            component.index, cache_dir(), offline=wanted.offline, wheels=True, progress=progress
        )
        with closing(archives):
            return archives.release(version)
    if not component.git:
        raise PatchqError(
            f"{component.name} names neither a package nor a repository",
            'add index = "PACKAGE" or git = "URL" to it',
        )
    history = History(component.git, cache_dir(), offline=wanted.offline, progress=progress)
    with closing(history):
        return history.release(version)


def _verified(release: Release) -> Check:
    facts = dict(release.facts)
    if "sha256" not in facts:
        return Check("source", True, f"commit {release.commit}")
    return Check("sha256", True, f"{facts.get('archive', release.name)}: {facts['sha256']}")


def _carried(
    book: Book,
    queue: Queue,
    component: Component,
    wanted: Wanted,
    seen: _Seen,
    report: UpdateReport,
    progress: Progress,
) -> UpdateReport:
    """The component has patches of its own: its queue takes the step, and the pin goes with it."""
    if (queue.project.private / "sessions" / component.name).exists():
        place = session.tree_of(queue.project, component.name)
        raise PatchqError(
            f"a session of {component.name} is open in {place}",
            f"end it first: `patchq sync --queue {component.name} --continue`, or --abort",
        )
    with upstream_of(queue, offline=wanted.offline, progress=progress) as upstream:
        target = upstream.release(seen.version)
        base = base_of(queue, upstream)
        step = attempt(
            queue,
            base,
            target,
            upstream.as_of(),
            upstream.store,
            progress,
            offline=wanted.offline,
        )
        sync: SyncReport = replace(step.report, dry_run=wanted.dry_run)
        # A session ends with another command, which knows nothing of what is set aside here.
        if step.carry.asks and not wanted.dry_run and not seen.relaxed:
            sync = begin(queue, upstream, base, target, step)
    values = pins.pin_of(target, index=bool(component.index))
    edit = pins.edited(book.project, "component", component.name, values, seen.relaxed)
    changes = {**step.changes, **edit} if step.ready else edit
    report = replace(report, sync=sync, proof=Proof((_verified(target), *sync.proof.checks)))
    if step.carry.asks or (sync.changed and not sync.proof.ok):
        return replace(report, changed=True, sha256=values.get("sha256", ""))
    return _finished(book, report, target, values, changes, wanted, progress)


def _finished(
    book: Book,
    report: UpdateReport,
    release: Release,
    values: Mapping[str, str],
    changes: Changes,
    wanted: Wanted,
    progress: Progress,
) -> UpdateReport:
    """Look what else the step means, and write it all at once."""
    name = report.name
    new = values.get("version") or values["commit"]
    findings, unseen = lacks(book, name, new, offline=wanted.offline, progress=progress)
    now = versions(book, {name: new})
    going = retirements(
        book, now, {}, onto=release, of=name, offline=wanted.offline, progress=progress
    )
    report = replace(
        report,
        new=new,
        sha256=values.get("sha256", ""),
        findings=findings,
        retirements=tuple(each for each in going if each.holds),
        missing=(*report.missing, *unseen),
    )
    return _recorded(book, report, changes)


def _recorded(book: Book, report: UpdateReport, changes: Changes) -> UpdateReport:
    root = book.project.root
    files = tuple(
        path
        for path, data in sorted(changes.items())
        if ((root / path).read_bytes() if (root / path).is_file() else None) != data
    )
    report = replace(report, changed=bool(files), files=files)
    if report.dry_run or not files:
        return report
    summary = f"{report.name} from {report.old} to {report.new}"
    entry = journal.record(book.project, "deps update", summary, changes)
    done = replace(report, recorded=entry is not None, entry=entry.id if entry else None)
    if done.sync is not None and done.sync.changed:
        done = replace(done, sync=replace(done.sync, recorded=done.recorded, entry=done.entry))
    return done


def _in_hub(book: Book, kind: str, entry: Model | Template, wanted: Wanted) -> UpdateReport:
    """A model, draft or template: another revision of its repository."""
    source = address(book.pins, entry)
    revision, doubt = wanted.version, f"{source} was not asked (--offline)"
    if not wanted.offline:
        revision, doubt = hub.resolved(source, wanted.version)
    same = revision.startswith(entry.revision)
    values = {"revision": revision, "sha256": wanted.sha256 or (entry.sha256 if same else "")}
    report = UpdateReport(
        kind,
        entry.name,
        entry.revision,
        revision,
        source,
        values["sha256"],
        None,
        proof=Proof((Check("revision", True, doubt or f"{source} has it"),)),
        dry_run=wanted.dry_run,
        missing=(doubt,) if wanted.offline else (),
    )
    return _recorded(book, report, pins.edited(book.project, kind, entry.name, values))
