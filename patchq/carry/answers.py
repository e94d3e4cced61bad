"""What people said of a patch, and what it makes of a verdict: pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from patchq.carry.moves import Merge
from patchq.carry.resolutions import FOLDER, Resolution
from patchq.judge.model import Judgement, Signal


@dataclass(frozen=True)
class Decision:
    """A person's answer for one patch, and the evidence that it was given on."""

    answer: str
    why: str
    evidence: str


@dataclass(frozen=True)
class Said:
    """What people said in a session: answers, patches held back and why, resolved conflicts."""

    decisions: Mapping[str, Decision] = field(default_factory=dict)
    held: Mapping[str, str] = field(default_factory=dict)
    fresh: tuple[Resolution, ...] = ()


def answered(verdict: Judgement, decision: Decision | None) -> Judgement:
    """A recorded answer counts where it was given on this very evidence."""
    if decision is None or verdict.action != "ask":
        return verdict
    if decision.evidence != evidence_id(verdict):
        return verdict
    if decision.answer == "drop":
        said = Signal("decision", "landed", f"decided to drop it: {decision.why}")
        return replace(verdict, action="drop", evidence=(*verdict.evidence, said), conflicts=())
    if verdict.conflicts:
        return verdict
    said = Signal("decision", "needed", f"decided to keep it: {decision.why}")
    return replace(verdict, action="keep", evidence=(*verdict.evidence, said))


def hold(verdict: Judgement, why: str) -> Judgement:
    said = Signal("held", "needed", f"held, not applied: {why}")
    return replace(verdict, verdict="needed", action="hold", evidence=(said,), conflicts=())


def resolved(verdict: Judgement, merges: Sequence[Merge], used: Sequence[Resolution]) -> Judgement:
    """A person resolved (some of) the conflicts before, and the same contents meet again."""
    said = tuple(
        Signal("resolution", "needed", each.says, f"{FOLDER}/{each.file}") for each in used
    )
    left = {each.seen.path for each in merges if each.seen.merge == "conflict"}
    verdict = replace(
        verdict,
        evidence=(*verdict.evidence, *said),
        conflicts=tuple(each for each in verdict.conflicts if each.path in left),
    )
    if not used or left or all(each.seen.merge in ("empty", "noop") for each in merges):
        return verdict
    return replace(verdict, verdict="needed", action="keep")


def evidence_id(verdict: Judgement) -> str:
    """What an answer is bound to: the verdict and every signal behind it."""
    import hashlib

    # What was resolved meanwhile is an answer itself.
    seen = [each for each in verdict.evidence if each.signal != "resolution"]
    text = "\n".join([verdict.verdict, *(f"{s.signal} {s.says} {s.detail} {s.ref}" for s in seen)])
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]
