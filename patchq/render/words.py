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
    "reverted": "green",
    "superseded": "cyan",
    "updated": "green",
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


def held(report: SyncReport) -> list[str]:
    """What is held back, where no table of patches names it."""
    if report.changed:
        return []
    return [f"{patch.name}: {reason(patch)}." for patch in report.patches if patch.action == "hold"]


def difference(patch: PatchReport) -> str:
    """What the range-diff of a patch shows."""
    gone = patch.action == "drop"
    return "upstream's version, against ours" if gone else "what changed in the patch"


def next_steps(report: SyncReport, *, committed: bool = False) -> list[str]:
    """What to type now."""
    if report.recorded:
        back = "`patchq undo` takes it back; `patchq history NAME` shows what became of a patch."
        return [back] if committed else [back, "Commit series/ and upstream/ when you are content."]
    asks = [patch for patch in report.patches if patch.action == "ask"]
    if report.session and asks:
        return _in_session(report, asks)
    steps = [_step(patch) for patch in asks]
    if report.changed and not asks and not report.proof.ok:
        steps.append(
            f"Edit the tree in {report.session}, then `patchq sync --continue`;"
            " or `patchq sync --abort`."
            if report.session
            else "Mend the patch that the proof names, then sync again."
        )
    return steps


def _in_session(report: SyncReport, asks: list[PatchReport]) -> list[str]:
    """What to type where a session is open: about the patch that its tree shows."""
    shown = next(patch for patch in asks if patch.name == report.shown)
    if shown.conflicts:
        files = ", ".join(show(conflict.path) for conflict in shown.conflicts)
        asked = f"Resolve {files} of {shown.name} in"
    else:
        asked = f"Is {shown.name} upstream's now? Answer, or edit it in"
    commands = [
        ("patchq sync --continue", "go on"),
        (f"patchq sync --skip {shown.name}", "hold it back"),
        (f"patchq decide {shown.name} drop --why TEXT", "let it go"),
        ("patchq sync --abort", "end the session: the queue is as it was"),
    ]
    if not shown.conflicts:
        commands.insert(0, (f"patchq decide {shown.name} keep --why TEXT", "keep it as it is"))
    wide = max(len(command) for command, _ in commands)
    told = [f"  {command:{wide}}  {what}" for command, what in commands]
    left = [patch.name for patch in asks if patch is not shown]
    after = [f"After it: {', '.join(left)}."] if left else []
    return [asked, f"  {report.session}", "and type one of", *told, *after]


def _step(patch: PatchReport) -> str:
    """What to do about one patch that asks, without a session."""
    drop = f"`patchq decide {patch.name} drop --why TEXT`"
    if patch.verdict == "uncertain":
        return (
            f"{patch.name}: is it upstream's now? `patchq decide {patch.name} keep|drop"
            " --why TEXT`, then sync again."
        )
    return (
        f"{patch.name}: resolve it in the session that `patchq sync` opens, or let it go with"
        f" {drop}, then sync again."
    )
