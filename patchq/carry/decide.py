"""`patchq decide`: record an answer beside the evidence that it was given on."""

from __future__ import annotations

from dataclasses import dataclass

import patchq.carry.decisions as decisions
from patchq.carry import journal
from patchq.carry.canonical import fold_any, side
from patchq.carry.fold import evidence_id
from patchq.carry.workspace import Queue, base_of, upstream_of
from patchq.errors import PatchqError
from patchq.progress import SILENT, Progress


@dataclass(frozen=True)
class DecideReport:
    queue: str
    name: str
    answer: str
    why: str
    onto: str
    evidence: str
    entry: int | None


def decide(
    queue: Queue,
    name: str,
    answer: str,
    why: str,
    *,
    onto: str = "latest",
    offline: bool = False,
    progress: Progress = SILENT,
) -> DecideReport:
    """Record `answer` ("keep" or "drop") for the patch `name`. The caller holds the lock.

    Raises PatchqError where the sync onto that release asks nothing about the patch, or where
    keeping it means to resolve a conflict first.
    """
    patch = queue.series.find(name)
    with upstream_of(queue, offline=offline, progress=progress) as upstream:
        target = upstream.release(upstream.latest() if onto == "latest" else onto)
        base = base_of(queue, upstream)
        answers = decisions.read(queue.project, queue.config.name)
        answers.pop(patch.name, None)
        carry = fold_any(
            upstream.store,
            side(base),
            side(target),
            queue.series.applied,
            decisions=answers,
            progress=progress,
        )
    judgement = next((each.judgement for each in carry.asks if each.patch.name == patch.name), None)
    if judgement is None:
        raise PatchqError(
            f"nothing is asked about {patch.name} on {target.name}",
            "see `patchq sync --dry-run`; name the release with --onto",
        )
    if answer == "keep" and judgement.conflicts:
        raise PatchqError(
            f"{patch.name} conflicts on {target.name}: it cannot be kept as it is",
            "rewrite it for that release, or drop it",
        )
    evidence = evidence_id(judgement)
    changes = decisions.answered(
        queue.project, queue.config.name, patch.name, answer, why, evidence
    )
    entry = journal.record(queue.project, "decide", f"{answer} {patch.name}: {why}", changes)
    return DecideReport(
        queue.config.name,
        patch.name,
        answer,
        why,
        target.name,
        evidence,
        entry.id if entry else None,
    )
