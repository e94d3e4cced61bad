"""One step of a queue from a release to another: judge and carry, prove, record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from patchq.carry import decisions, journal, pins, plan, rangediff, resolutions
from patchq.carry.answers import Said
from patchq.carry.canonical import exported, fold_any, side
from patchq.carry.checks import runner
from patchq.carry.fold import Carried, Carry, Knowing
from patchq.carry.informed import informed, told
from patchq.carry.prove import prove
from patchq.carry.pulls.book import book, watched
from patchq.carry.report import PatchReport, Proof, SyncReport, held_report
from patchq.carry.resolutions import Resolutions
from patchq.carry.warn import warned
from patchq.carry.workspace import Queue
from patchq.errors import PatchqError
from patchq.gitstore.store import Store
from patchq.judge.model import Judgement, Signal
from patchq.progress import Progress
from patchq.queue.patch import Patch
from patchq.upstream.releases import AsOf, Release


@dataclass(frozen=True)
class Step:
    """A step that was tried: what it came to, and what it would write."""

    report: SyncReport
    carry: Carry
    changes: Mapping[str, bytes | None]

    @property
    def ready(self) -> bool:
        """Whether it can be recorded, and there is something to record."""
        return self.report.changed and not self.carry.asks and self.report.proof.ok


def carried(
    queue: Queue,
    base: Release,
    target: Release,
    store: Store,
    progress: Progress,
    said: Said | None = None,
    *,
    but: str = "",
    offline: bool = True,
) -> Carry:
    """The series folded from `base` to `target` with what was recorded and `said`.

    What was answered about the patch `but` is not counted; `offline` forbids to fetch history.
    """
    said = said or Said()
    answers = {**decisions.read(queue.project, queue.config.name), **said.decisions}
    answers.pop(but, None)
    known = Resolutions(resolutions.read(queue.folder), said.fresh)

    def go(knowing: Knowing) -> Carry:
        return fold_any(
            store,
            side(base),
            side(target),
            queue.series.applied,
            decisions=answers,
            held=said.held,
            resolutions=known,
            knowing=knowing,
            progress=progress,
        )

    return informed(queue, base, target, store, go, offline=offline, progress=progress)


def attempt(
    queue: Queue,
    base: Release,
    target: Release,
    as_of: AsOf,
    store: Store,
    progress: Progress,
    said: Said | None = None,
    *,
    offline: bool = True,
) -> Step:
    """Carry the series from `base` to `target` with what was recorded and `said`, and prove it."""
    said = said or Said()
    carry = carried(queue, base, target, store, progress, said, offline=offline)
    texts = exported(store, carry)
    carry = warned(queue, base, target, carry, texts, store, offline=offline, progress=progress)
    proof = Proof()
    if not carry.asks:
        # A series that was carried is proved against what it was on the base before.
        proof = prove(
            store,
            target.tree,
            [texts[each.patch.name] for each in carry.patches if each.commit],
            carry.tree,
            patched_before=Patched(store, base, queue),
            run_checks=runner(queue.project, queue.config.series, progress),
            progress=progress,
        )
    after = plan.next_series(queue.series, carry.patches, texts, said.held)
    dropped = {
        each.patch.file: plan.retired_text(each.patch, each.judgement, target.name)
        for each in carry.patches
        if each.judgement.action == "drop"
    }
    changes = plan.changes(queue.config.series, queue.series, after, dropped)
    state = queue.state.on(base, "", "").on(target, after.digest, carry.tree)
    # A pull request that went with its patch is not watched any more.
    refused = decisions.pulls(queue.project, queue.config.name)
    watching = watched(book(queue.config.track, after.all, state.pulls, refused))
    state = replace(state, pulls={k: pull for k, pull in state.pulls.items() if k in watching})
    changes |= queue.state_file(state)
    # Of a component's own queue the pin is the base: they move together.
    changes |= pins.followed(queue.project, queue.config.name, target)
    # What was said in a session is recorded with what came of it.
    changes |= decisions.all_answered(queue.project, queue.config.name, said.decisions)
    used = {each.file: each for patch in carry.patches for each in patch.used}
    changes |= resolutions.changes(queue.config.series, used.values())
    report = SyncReport(
        queue.config.name,
        base.name,
        target.name,
        carry.tree,
        _differs(queue, changes),
        False,
        told(as_of, carry),
        _reports(queue, carry, texts),
        proof,
    )
    return Step(report, carry, changes)


def record(queue: Queue, step: Step, progress: Progress) -> SyncReport:
    """Write what the step came to, all at once."""
    progress.step("recording")
    report = step.report
    summary = f"{report.queue} from {report.base_from} to {report.base_to}"
    entry = journal.record(queue.project, "sync", summary, step.changes)
    return replace(report, recorded=entry is not None, entry=entry.id if entry else None)


def _differs(queue: Queue, changes: Mapping[str, bytes | None]) -> bool:
    for path, data in changes.items():
        file = queue.project.root / path
        if (file.read_bytes() if file.is_file() else None) != data:
            return True
    return False


class Patched:
    """A path's content as the series left it on the old base; built when first asked."""

    def __init__(self, store: Store, base: Release, queue: Queue) -> None:
        self._store = store
        self._base = base
        self._queue = queue
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


def _reports(queue: Queue, carry: Carry, texts: Mapping[str, Patch]) -> tuple[PatchReport, ...]:
    """One entry for each patch that stood in the series, in its order, held ones included."""
    found = {each.patch.name: each for each in carry.patches}
    held = queue.series.held
    return tuple(
        held_report(queue, patch, held[patch.name])
        if patch.name in held
        else _report(queue, patch, found[patch.name], texts.get(patch.name), carry.history)
        for patch in queue.series.all
    )


def _report(
    queue: Queue, patch: Patch, carried: Carried, text: Patch | None, history: str | None
) -> PatchReport:
    judgement = carried.judgement
    dropped = judgement.action == "drop"
    return PatchReport(
        patch.number,
        patch.name,
        patch.header.subject,
        None if dropped else queue.path_of(patch),
        judgement.verdict,
        carried.carry,
        judgement.action,
        judgement.evidence + _causes(judgement, history) + _conditions(patch),
        judgement.conflicts,
        judgement.findings,
        _range_diff(patch, text, carried),
        text is not None and text.text != patch.text,
        carried.stop.clashes if carried.stop else (),
    )


def _causes(judgement: Judgement, history: str | None) -> tuple[Signal, ...]:
    """Since when it conflicts, in one sentence for each upstream commit that did it."""
    if not judgement.conflicts:
        return ()
    if history != "":
        return (Signal("cause", "unclear", "no history: cause not searched"),)
    causes = {cause.commit: cause for each in judgement.conflicts for cause in each.causes}
    return tuple(
        Signal("cause", "unclear", f"conflicts since {each.told}", each.commit)
        for each in causes.values()
    )


def _conditions(patch: Patch) -> tuple[Signal, ...]:
    """What the patch itself says of when it goes: for the maintainer to read at every sync."""
    return tuple(
        Signal("drop-when", "unclear", f"goes when: {value}")
        for value in patch.header.all("Patchq-Drop-When")
    )


def _range_diff(patch: Patch, text: Patch | None, carried: Carried) -> str:
    if carried.upstream:
        return carried.upstream
    if text is None or carried.judgement.conflicts:
        return ""
    # Against the canonical form that was carried: another spelling is no change.
    return rangediff.between(carried.patch.diff, text.diff, carried.moved)
