"""What a queue is right now: its tree, its state, whether it holds, what became of a patch."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from patchq.carry import journal, shelf
from patchq.carry.canonical import applied
from patchq.carry.checks import runner
from patchq.carry.prove import apply_check, sound
from patchq.carry.quilt import by_quilt
from patchq.carry.report import Check, Proof
from patchq.carry.workspace import Queue, base_of, upstream_of
from patchq.config import Project
from patchq.gitstore.store import Store
from patchq.paths import show
from patchq.progress import SILENT, Progress
from patchq.queue import header as headers
from patchq.queue.patch import FILE
from patchq.queue.series import RETIRED
from patchq.upstream.releases import Release


def runner_tree(queue: Queue, *, offline: bool = False, progress: Progress = SILENT) -> str:
    """The hash of base + series; from the record where the series is the one it is of."""
    if queue.is_proved and queue.state.runner_tree:
        return queue.state.runner_tree
    with upstream_of(queue, offline=offline, progress=progress) as upstream:
        return made_tree(queue, upstream.store, base_of(queue, upstream), progress)


def made_tree(queue: Queue, store: Store, base: Release, progress: Progress = SILENT) -> str:
    """The same, with its objects in the store: the record alone brings none to a new machine."""
    return applied(store, base, queue.series.applied, progress).tree


@dataclass(frozen=True)
class CheckReport:
    """Whether the series holds on its base. `tree` is what it gives there.

    `renumbered` are the old and new files of patches that got another number first.
    """

    queue: str
    base: str
    tree: str
    proof: Proof
    renumbered: tuple[tuple[str, str], ...] = ()


def check(
    queue: Queue, *, quilt: bool = False, offline: bool = False, progress: Progress = SILENT
) -> CheckReport:
    """Apply the series by git (and by quilt), compile what it changed, run what it brings."""
    series = queue.series.applied
    with upstream_of(queue, offline=offline, progress=progress) as upstream:
        base = base_of(queue, upstream)
        store = upstream.store
        carry = applied(store, base, series, progress)
        checks = [_numbers(queue), _strays(queue), _canonical(queue, carry.patches)]
        checks.append(apply_check(store, base.tree, series, carry.tree))
        checks += sound(store, base.tree, carry.tree, _reader(store, carry.tree))
        if queue.state.runner_tree:
            checks.append(_recorded(queue, carry.tree))
        if quilt:
            progress.step("applying with quilt")
            checks.append(by_quilt(store, base.tree, series))
        checks += runner(queue.project, queue.config.series, progress)(store, carry.tree, series)
    return CheckReport(queue.config.name, base.name, carry.tree, Proof(tuple(checks)))


def _reader(store: Store, tree: str) -> Callable[[bytes], bytes | None]:
    # What the series itself defines twice was accepted when it was recorded.
    def read(path: bytes) -> bytes | None:
        entry = store.objects.lookup(tree, path)
        return store.objects.blob(entry.oid) if entry else None

    return read


def _recorded(queue: Queue, tree: str) -> Check:
    if queue.state.runner_tree == tree:
        return Check("recorded tree", True, tree)
    return Check(
        "recorded tree",
        False,
        f"the series gives {tree}, {queue.state.runner_tree} is recorded:"
        " it was changed by hand; `patchq sync --onto "
        f"{queue.state.release}` proves and records it",
    )


def _numbers(queue: Queue) -> Check:
    double = [f"{patch.file} and {other}" for patch, other in queue.series.doubled]
    told = "; ".join(double) + ": `patchq check --renumber` renumbers the later"
    return Check("numbers", not double, told if double else f"{len(queue.series.all)} patches")


def _strays(queue: Queue) -> Check:
    """A patch file that the series does not name is lost without a word."""
    known = {patch.file for patch in queue.series.all}
    odd = sorted(p.name for p in queue.folder.glob("*.patch") if p.name not in known)
    told = f"not in the series file: {', '.join(map(show, odd))}; add or remove them"
    return Check("files", not odd, told if odd else f"{len(known)} named")


def _canonical(queue: Queue, carried: Sequence[object]) -> Check:
    odd = [patch.file for patch in queue.series.applied if patch.files is None]
    ok = not odd
    detail = f"not in canonical form: {', '.join(odd)}; `patchq sync` rewrites them"
    return Check("canonical form", ok, f"{len(carried)} patches" if ok else detail)


@dataclass(frozen=True)
class StatusReport:
    """Where the queue stands, without asking anybody outside."""

    queue: str
    source: str
    base: str
    tree: str
    applied: int
    held: tuple[tuple[str, str], ...]
    retired: int
    proved: bool
    recovered: str | None = None


def status(queue: Queue, recovered: str | None = None) -> StatusReport:
    source = queue.config.sources[0]
    return StatusReport(
        queue.config.name,
        f"{source.kind} {source.value}",
        queue.state.release,
        queue.state.runner_tree if queue.is_proved else "",
        len(queue.series.applied),
        tuple(queue.series.held.items()),
        len(queue.series.retired),
        queue.is_proved,
        recovered,
    )


@dataclass(frozen=True)
class Event:
    """One step of a patch's (or the queue's) life: a journal entry, or its retirement."""

    when: datetime | None
    entry: int | None
    what: str
    detail: str
    text: bytes = b""


@dataclass(frozen=True)
class HistoryReport:
    queue: str
    name: str
    events: tuple[Event, ...]


def history(project: Project, queue: Queue, name: str | None) -> HistoryReport:
    """What was done to the queue, or to the patch `name` (a retired one included).

    Raises PatchqError for a name that never was.
    """
    entries = journal.entries(project)
    names = _names(entries, name) if name is not None else {""}
    events = [
        Event(entry.at, entry.id, entry.command, _entry_detail(entry, queue.config.series))
        for entry in entries
        if name is None or any(_is_of(change.path, n) for change in entry.changes for n in names)
    ]
    if name is not None:
        events += [event for each in sorted(names) for event in _retired(queue, each)]
        if not events and name not in {patch.name for patch in queue.series.all}:
            queue.series.find(name)
    return HistoryReport(queue.config.name, name or "", tuple(events))


def _entry_detail(entry: shelf.Entry, folder: str) -> str:
    undone = f" (taken back by entry {entry.undone_by})" if entry.undone_by else ""
    return entry.summary + undone


def _names(entries: Sequence[shelf.Entry], name: str) -> set[str]:
    """`name` with the names that the patch had before."""
    names = {name}
    for entry in reversed(entries):
        if entry.command == "rename":
            old, new = (
                {found[2] for change in entry.changes if (found := _gone(change, key))}
                for key in ("new_sha256", "old_sha256")
            )
            if new & names:
                names |= old
    return names


def _gone(change: shelf.Change, key: str) -> re.Match[str] | None:
    """The patch file of a change that has none on that side."""
    return FILE.match(change.path.rpartition("/")[2]) if getattr(change, key) is None else None


def _is_of(path: str, name: str) -> bool:
    found = FILE.match(path.rpartition("/")[2])
    return bool(found and name in (found[2], found[0], str(int(found[1]))))


def _retired(queue: Queue, name: str) -> list[Event]:
    events = []
    for file in queue.series.retired:
        if not _is_of(file, name):
            continue
        data = (queue.folder / RETIRED / file).read_bytes()
        header, _ = headers.parse(data, file)
        told = "; ".join(header.all("Patchq-Evidence"))
        events.append(Event(None, None, f"dropped: {header.get('Patchq-Dropped')}", told, data))
    return events
