"""A session for people: the sides of each conflict, and what to type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from patchq.paths import show
from patchq.render.console import text

if TYPE_CHECKING:
    from patchq.carry.addgit import AddGitReport
    from patchq.carry.clash import Clash
    from patchq.carry.report import SyncReport
    from patchq.carry.session import Glance

LINES = 4
"""Lines of a side that are shown; the tree and --json have them all."""


def sides(clash: Clash, upstream: str, patch: str) -> RenderableType:
    """Both sides of a conflict, place by place."""
    parts: list[RenderableType] = []
    for side in clash.sides:
        parts.append(text(f"    line {side.line}, {upstream}:", "dim"))
        parts += _lines(side.ours, "cyan")
        parts.append(text(f"    {patch}:", "dim"))
        parts += _lines(side.theirs, "green")
    if not clash.sides:
        parts.append(text(f"    {upstream}: {_what(clash.ours is None)}", "cyan"))
        parts.append(text(f"    {patch}: {_what(clash.theirs is None)}", "green"))
    return Group(*parts)


def _what(absent: bool) -> str:
    return "no such file" if absent else "a file that cannot be shown as lines"


def _lines(data: bytes, style: str) -> list[RenderableType]:
    found = data.split(b"\n")
    if found[-1] == b"":
        found.pop()
    shown: list[RenderableType] = [Text(f"      | {show(line)}", style) for line in found[:LINES]]
    if len(found) > LINES:
        shown.append(text(f"      | ... {len(found) - LINES} more", "dim"))
    if not found:
        shown.append(text("      (nothing)", "dim"))
    return shown


def rows(glance: Glance | None) -> list[tuple[str, str]]:
    """The open session in `patchq status`."""
    if glance is None:
        return []
    if glance.damaged:
        return [("session", glance.damaged)]
    shown = f", at {glance.shown}" if glance.shown else ""
    told = f"open, onto {glance.onto}{shown}: `patchq sync` tells more; its tree is {glance.tree}"
    return [("session", told)]


def notes(report: SyncReport) -> list[RenderableType]:
    return [text(note, "yellow") for note in report.notes]


def added_git(report: AddGitReport) -> RenderableType:
    parts = [text(f"{report.queue} has its history from {report.url} now ({report.file}).")]
    missing = [release for release, commit in report.releases if commit is None]
    if missing:
        parts.append(
            text(
                f"It has no tag with the files of {', '.join(missing)}: no history there.", "yellow"
            )
        )
    return Group(*parts)
