"""The sentences that table, Markdown and commit message have in common."""

from __future__ import annotations

from patchq.carry.rangediff import changes_lines
from patchq.carry.report import PatchReport, SyncReport
from patchq.paths import show

STYLES = {
    "needed": "green",
    "landed": "cyan",
    "landed-with-changes": "cyan",
    "partly-landed": "yellow",
    "uncertain": "bold yellow",
    "gone": "bold red",
    "conflict": "bold red",
}
DID = {
    "keep": "kept",
    "drop": "dropped",
    "shrink": "kept, the rest of it",
    "update": "updated",
    "hold": "held",
    "ask": "you decide",
}


def headline(report: SyncReport) -> str:
    """What the sync came to, in one sentence."""
    if report.base_from == report.base_to:
        where = f"{report.queue} on {report.base_to}"
    else:
        where = f"{report.queue} from {report.base_from} to {report.base_to}"
    if not report.changed:
        return f"{report.queue} is on {report.base_to} already: nothing changed."
    asks = sum(patch.action == "ask" for patch in report.patches)
    if asks:
        need = "patch needs" if asks == 1 else "patches need"
        return f"{where}: {asks} {need} your decision. Nothing was changed."
    if not report.proof.ok:
        return f"{where}: the proof failed. Nothing was changed."
    counted = counts(report)
    if report.dry_run:
        return f"{where}: would be done ({counted}). Nothing was changed (--dry-run)."
    return f"{where}: done, {counted}."


def counts(report: SyncReport) -> str:
    """How many patches were kept, dropped, ..."""
    order = ("keep", "shrink", "update", "drop", "hold", "ask")
    words = {"shrink": "kept in part", "ask": "undecided"} | {
        key: value for key, value in DID.items() if key in ("keep", "drop", "update", "hold")
    }
    found = [(key, sum(patch.action == key for patch in report.patches)) for key in order]
    told = [f"{count} {words[key]}" for key, count in found if count]
    return ", ".join(told) or "no patches"


def reason(patch: PatchReport) -> str:
    """Why: the evidence in a sentence each."""
    told = [signal.detail for signal in patch.evidence]
    if patch.range_diff and not changes_lines(patch.range_diff):
        told.append("only its context changed")
    told += [f"{show(finding.path)}: {finding.says}" for finding in patch.findings]
    return "; ".join(told)


def next_steps(report: SyncReport) -> list[str]:
    """What to type now."""
    if report.recorded:
        return [
            "`patchq undo` takes it back; `patchq history NAME` shows what became of a patch.",
            "Commit series/ and upstream/ when you are content.",
        ]
    asks = [patch for patch in report.patches if patch.action == "ask"]
    steps = []
    for patch in asks:
        if patch.verdict == "uncertain":
            steps.append(
                f"{patch.name}: is it upstream's now? `patchq decide {patch.name} keep|drop"
                " --why TEXT`, then sync again."
            )
        else:
            steps.append(
                f"{patch.name}: rewrite it for {report.base_to}, or let it go with"
                f" `patchq decide {patch.name} drop --why TEXT`, then sync again."
            )
    if report.changed and not asks and not report.proof.ok:
        steps.append("Mend the patch that the proof names, then sync again.")
    return steps
