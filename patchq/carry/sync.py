"""`patchq sync`: observe, judge and carry, prove, record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from patchq.carry import decisions, journal, plan, rangediff
from patchq.carry.canonical import exported, fold_any
from patchq.carry.checks import runner
from patchq.carry.fold import Carried, Carry
from patchq.carry.prove import Check, Proof, prove
from patchq.carry.workspace import Queue, base_of, side, upstream_of
from patchq.errors import PatchqError
from patchq.gitstore.store import Store
from patchq.judge.model import (
    Action,
    CarryWord,
    Conflict,
    Finding,
    Signal,
    VerdictWord,
)
from patchq.progress import SILENT, Progress
from patchq.queue.patch import Patch
from patchq.upstream.releases import AsOf, Release

DONE, DECISION, UNPROVED, INCOMPLETE = 0, 4, 5, 6


@dataclass(frozen=True)
class PatchReport:
    """What happened to one patch. `file` is None once it is dropped; `range_diff` is empty
    where nothing but places changed."""

    number: int
    name: str
    subject: str
    file: str | None
    verdict: VerdictWord
    carry: CarryWord | None
    action: Action
    evidence: tuple[Signal, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    findings: tuple[Finding, ...] = ()
    range_diff: str = ""
    rewritten: bool = False


@dataclass(frozen=True)
class SyncReport:
    """The result of a sync. `entry` is the journal's, with which `patchq undo` takes it back."""

    queue: str
    base_from: str
    base_to: str
    tree: str
    changed: bool
    recorded: bool
    upstream: AsOf
    patches: tuple[PatchReport, ...]
    proof: Proof
    entry: int | None = None
    recovered: str | None = None
    dry_run: bool = False
    session: str | None = None

    @property
    def exit_code(self) -> int:
        """0 done, 4 a decision is needed, 5 a proof failed, 6 upstream was not reached."""
        if any(patch.action == "ask" for patch in self.patches):
            return DECISION
        if self.changed and not self.proof.ok:
            return UNPROVED
        return DONE if self.upstream.complete else INCOMPLETE


def sync(
    queue: Queue,
    *,
    onto: str = "latest",
    dry_run: bool = False,
    offline: bool = False,
    refresh: bool = False,
    recovered: str | None = None,
    progress: Progress = SILENT,
) -> SyncReport:
    """Carry the queue's series onto the release `onto` and record the result.

    The caller holds the lock. Nothing is written unless every patch has an answer and the proof
    holds. Raises PatchqError for an unknown release or a series that is no series.
    """
    with upstream_of(queue, offline=offline, refresh=refresh, progress=progress) as upstream:
        name = upstream.latest() if onto == "latest" else onto
        if queue.is_proved and name == queue.state.release:
            report = _nothing(queue, upstream.as_of())
        else:
            target = upstream.release(name)
            if queue.is_proved and (target.name, target.tree) == _stands_on(queue):
                report = _nothing(queue, upstream.as_of())
            else:
                base, as_of = base_of(queue, upstream), upstream.as_of()
                report = _step(queue, base, target, as_of, upstream.store, dry_run, progress)
    return replace(report, recovered=recovered)


def _stands_on(queue: Queue) -> tuple[str, str]:
    return queue.state.release, queue.state.tree


def _nothing(queue: Queue, as_of: AsOf) -> SyncReport:
    """Nothing to do: the series stands on that release, proved."""
    held = queue.series.held
    patches = tuple(
        _held(patch, held[patch.name]) if patch.name in held else _kept(patch)
        for patch in queue.series.all
    )
    state = queue.state
    return SyncReport(
        queue.config.name,
        state.release,
        state.release,
        state.runner_tree,
        False,
        False,
        as_of,
        patches,
        Proof((Check("recorded", True, "the series is the one that was proved on this base"),)),
    )


def _step(
    queue: Queue,
    base: Release,
    target: Release,
    as_of: AsOf,
    store: Store,
    dry_run: bool,
    progress: Progress,
) -> SyncReport:
    answers = decisions.read(queue.project, queue.config.name)
    carry = fold_any(
        store,
        side(base),
        side(target),
        queue.series.applied,
        decisions=answers,
        progress=progress,
    )
    texts = exported(store, carry)
    proof = Proof()
    if not carry.asks:
        # A series that was carried is proved against what it was on the base before.
        proof = prove(
            store,
            target.tree,
            [texts[each.patch.name] for each in carry.patches if each.commit],
            carry.tree,
            patched_before=_patched(store, base, queue, progress),
            run_checks=runner(queue.project, queue.config.series, progress),
            progress=progress,
        )
    after = plan.next_series(queue.series, carry.patches, texts)
    dropped = {
        each.patch.file: plan.retired_text(each.patch, each.judgement, target.name)
        for each in carry.patches
        if each.judgement.action == "drop"
    }
    changes = plan.changes(queue.config.series, queue.series, after, dropped)
    state = queue.state.on(base, "", "").on(target, after.digest, carry.tree)
    changes |= queue.state_file(state)
    report = SyncReport(
        queue.config.name,
        base.name,
        target.name,
        carry.tree,
        _differs(queue, changes),
        False,
        as_of,
        _reports(queue, carry, texts),
        proof,
        dry_run=dry_run,
    )
    if dry_run or carry.asks or not proof.ok or not report.changed:
        return report
    progress.step("recording")
    return _record(queue, report, changes)


def _record(queue: Queue, report: SyncReport, changes: Mapping[str, bytes | None]) -> SyncReport:
    summary = f"{report.queue} from {report.base_from} to {report.base_to}"
    entry = journal.record(queue.project, "sync", summary, changes)
    return replace(report, recorded=entry is not None, entry=entry.id if entry else None)


def _differs(queue: Queue, changes: Mapping[str, bytes | None]) -> bool:
    for path, data in changes.items():
        file = queue.project.root / path
        if (file.read_bytes() if file.is_file() else None) != data:
            return True
    return False


class _Patched:
    """A path's content as the series left it on the old base; built when first asked."""

    def __init__(self, store: Store, base: Release, queue: Queue, progress: Progress) -> None:
        self._store = store
        self._base = base
        self._queue = queue
        self._progress = progress
        self._tree = queue.state.runner_tree if queue.is_proved else ""

    def __call__(self, path: bytes) -> bytes | None:
        if not self._tree or not self._known():
            series = self._queue.series.applied
            here = side(self._base)
            self._tree = fold_any(self._store, here, here, series).tree
        entry = self._store.objects.lookup(self._tree, path)
        return self._store.objects.blob(entry.oid) if entry else None

    def _known(self) -> bool:
        try:
            self._store.objects.tree(self._tree)
        except PatchqError:
            return False
        return True


def _patched(store: Store, base: Release, queue: Queue, progress: Progress) -> _Patched:
    return _Patched(store, base, queue, progress)


def _reports(queue: Queue, carry: Carry, texts: Mapping[str, Patch]) -> tuple[PatchReport, ...]:
    """One entry for each patch that stood in the series, in its order, held ones included."""
    carried = {each.patch.name: each for each in carry.patches}
    held = queue.series.held
    return tuple(
        _held(patch, held[patch.name])
        if patch.name in held
        else _report(patch, carried[patch.name], texts.get(patch.name))
        for patch in queue.series.all
    )


def _report(patch: Patch, carried: Carried, text: Patch | None) -> PatchReport:
    judgement = carried.judgement
    dropped = judgement.action == "drop"
    return PatchReport(
        patch.number,
        patch.name,
        patch.header.subject,
        None if dropped else patch.file,
        judgement.verdict,
        carried.carry,
        judgement.action,
        judgement.evidence,
        judgement.conflicts,
        judgement.findings,
        _range_diff(patch, text, carried),
        text is not None and text.text != patch.text,
    )


def _range_diff(patch: Patch, text: Patch | None, carried: Carried) -> str:
    if text is None or carried.judgement.conflicts:
        return ""
    # Against the canonical form that was carried: another spelling is no change.
    return rangediff.between(carried.patch.diff, text.diff, carried.moved)


def _held(patch: Patch, why: str) -> PatchReport:
    said = (Signal("held", "needed", f"held, not applied: {why}"),)
    return PatchReport(
        patch.number, patch.name, patch.header.subject, patch.file, "needed", "held", "hold", said
    )


def _kept(patch: Patch) -> PatchReport:
    return PatchReport(
        patch.number, patch.name, patch.header.subject, patch.file, "needed", "clean", "keep"
    )
