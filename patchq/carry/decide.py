"""`patchq decide`: record an answer beside the evidence that it was given on."""

from __future__ import annotations

from dataclasses import dataclass

import patchq.carry.decisions as decisions
from patchq.carry import journal, session
from patchq.carry.report import SyncReport
from patchq.carry.resume import answer, decided, resume
from patchq.carry.step import carried
from patchq.carry.workspace import Queue, base_of, upstream_of
from patchq.progress import SILENT, Progress


@dataclass(frozen=True)
class DecideReport:
    """An answer that was taken; in a session, what came of going on with it (`sync`)."""

    queue: str
    name: str
    answer: str
    why: str
    onto: str
    evidence: str
    entry: int | None
    sync: SyncReport | None = None

    @property
    def exit_code(self) -> int:
        return self.sync.exit_code if self.sync else 0


def decide(
    queue: Queue,
    name: str,
    word: str,
    why: str,
    *,
    onto: str = "latest",
    offline: bool = False,
    progress: Progress = SILENT,
) -> DecideReport:
    """Take the answer `word` ("keep" or "drop") for the patch `name`. The caller holds the lock.

    In a session it is the session's, which goes on with it; else it is recorded for the next sync.
    Raises PatchqError where the sync onto that release asks nothing about the patch, or where
    keeping it means to resolve a conflict first.
    """
    patch = queue.series.find(name)
    label = queue.config.name
    now = session.find(queue.project, label)
    with upstream_of(queue, offline=offline, progress=progress) as upstream:
        if now is not None and onto in ("latest", now.onto):
            work = resume(queue, upstream, now, progress)
            decision, report = answer(work, patch.name, word, why)
            evidence = decision.evidence
            return DecideReport(
                label, patch.name, word, why, now.onto, evidence, report.entry, report
            )
        target = upstream.release(upstream.latest() if onto == "latest" else onto)
        base = base_of(queue, upstream)
        store = upstream.store
        carry = carried(queue, base, target, store, progress, but=patch.name, offline=offline)
    decision = decided(carry, patch, target.name, word, why)
    changes = decisions.all_answered(queue.project, label, {patch.name: decision})
    entry = journal.record(queue.project, "decide", f"{word} {patch.name}: {why}", changes)
    return DecideReport(
        label,
        patch.name,
        word,
        why,
        target.name,
        decision.evidence,
        entry.id if entry else None,
    )
