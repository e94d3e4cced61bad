"""What became of the series, for people: what was done, or what clashes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType

from patchq.paths import show
from patchq.render.console import text
from patchq.render.tables import proof

if TYPE_CHECKING:
    from patchq.carry.arrange import ChangeReport
    from patchq.carry.replay import Clash

SAID = {
    "edit": "{}: its header is changed",
    "rename": "{} now",
    "delete": "deleted {}",
    "hold": "held {}",
    "unhold": "{} is applied again",
    "move": "moved {}",
    "split": "split {}",
}
FIRST = "What needs it is named: `patchq hold` or `patchq delete` that first."
NEXT = {
    "delete": FIRST,
    "hold": FIRST,
    "move": "`patchq graph` shows what needs what; move those along.",
    "unhold": "Write it anew (`patchq new`, `patchq refresh`), then `patchq delete` this one.",
}
"""What to do where a change clashes."""


def changed(report: ChangeReport) -> RenderableType:
    """One sentence, the patches that read anew, and what to type; or every clash."""
    if report.clashes:
        parts = [text(f"{report.command} {report.summary}: not done, nothing was changed", "bold")]
        parts += [text(f"  {_clash(clash)}") for clash in report.clashes]
        parts += [text(NEXT[report.command])] if report.command in NEXT else []
        return Group(*parts)
    if not report.proof.ok:
        said = f"{report.command} {report.summary}: the proof failed, nothing was changed"
        return Group(proof(report.proof), text(said, "bold red"))
    said = SAID[report.command].format(report.summary)
    if not report.dry_run and report.entry is None:
        return text("It is so already: nothing was changed.")
    parts = [text(f"{said}{' (--dry-run: nothing was changed)' if report.dry_run else ''}", "bold")]
    anew = ", ".join(report.rewritten)
    if anew:
        parts.append(text(f"  rewritten for their new place: {anew}"))
    parts.append(text(f"  tree {report.tree}", "dim"))
    return Group(*parts)


def _clash(clash: Clash) -> str:
    where = f" in {show(clash.path)}" if clash.path else ""
    others = f" (because of {', '.join(clash.others)})" if clash.others else ""
    return f"{clash.patch}{where}: {clash.why}{others}"
