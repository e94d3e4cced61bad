"""The working tree for people and machines."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from patchq.paths import lossless, named, show

if TYPE_CHECKING:
    from rich.console import RenderableType

    from patchq.work.look import Look, Unrefreshed
    from patchq.work.report import Left, WorkReport

STYLES = {"conflict": "bold red", "merged": "yellow", "empty": "yellow", "given up": "yellow"}
TOLD = {
    "pushed": "applied",
    "merged": "applied, merged: it reads anew",
    "empty": "applied; it changes nothing",
    "conflict": "conflicts",
    "popped": "taken off",
    "given up": "given up",
    "new": "added",
    "refreshed": "refreshed",
}
FEW = 12
"""Patches and files that are named one by one; of more, how many."""


def moved(report: WorkReport) -> RenderableType:
    """What became of each patch, what is to be seen to, and where the tree stands."""
    from rich.console import Group

    from patchq.render.console import text

    parts: list[RenderableType] = [text(each, "yellow") for each in report.says]
    quiet = [each for each in report.moved if each.word in ("pushed", "popped")]
    if len(quiet) > FEW:
        parts.append(text(f"{len(quiet)} patches {TOLD[quiet[0].word]}"))
    for each in report.moved:
        if len(quiet) > FEW and each.word in ("pushed", "popped"):
            continue
        told = "refreshed: it " if report.command == "refresh" and each.word == "empty" else ""
        told = f"{told}changes nothing any more" if told else TOLD[each.word]
        parts.append(text(f"{each.name}: {told}", STYLES.get(each.word, "")))
    parts += [text(line) for line in _clashes(report)]
    if report.taken:
        parts.append(text(f"taken: {named(report.taken, FEW)}", "dim"))
    if report.litter:
        parts.append(text(f"left out: {named(report.litter, FEW)}", "dim"))
    if report.carried:
        parts.append(text(f"carried above it: {', '.join(report.carried)}"))
    told = "above it changes nothing any more"
    parts += [text(f"{name} {told}", "yellow") for name in report.emptied]
    parts += [text(_left(each), "bold yellow") for each in report.left]
    parts.append(text(_where(report), "bold"))
    return Group(*parts)


def _clashes(report: WorkReport) -> list[str]:
    told = [
        f"  {show(clash.path)}: {clash.kind}"
        + ("" if clash.marked else " (no markers: the patch's version stands there)")
        for clash in report.clashes
    ]
    if told:
        told.append(
            f"Resolve it in {_near(report.folder)}, then `patchq refresh`; or give it up with"
            " `patchq pop`."
        )
    return told


def _left(each: Left) -> str:
    if each.because:
        return f"{each.name} above it waits for {each.because}, and stays as it was"
    paths = ", ".join(f"{show(path)} ({kind})" for path, kind in each.paths)
    return (
        f"{each.name} above it does not fit any more in {paths}; it stays as it was:"
        f" `patchq goto {each.name}` shows the conflict"
    )


def _near(folder: str) -> str:
    """A folder as seen from here, where it is below."""
    here = os.path.join(os.getcwd(), "")
    return folder.removeprefix(here)


def _where(report: WorkReport) -> str:
    would = "would be" if report.dry_run else "is"
    total = report.applied + report.unapplied
    if report.pending:
        return f"{report.pending} {would} open on top of {report.top or 'the release'}"
    if report.top is None:
        return f"Nothing {would} applied (0 of {total}) in {_near(report.folder)}"
    return f"{report.top} {would} on top ({report.applied} of {total}) in {_near(report.folder)}"


def moved_json(report: WorkReport) -> dict[str, Any]:
    return {
        "schema": "patchq.work/1",
        "queue": report.queue,
        "command": report.command,
        "tree": report.folder,
        "top": report.top,
        "applied": report.applied,
        "unapplied": report.unapplied,
        "pending": report.pending,
        "patches": [{"name": each.name, "what": each.word} for each in report.moved],
        "conflicts": [
            {"path": lossless(clash.path), "kind": clash.kind, "marked": clash.marked}
            for clash in report.clashes
        ],
        "carried": list(report.carried),
        "emptied": list(report.emptied),
        "left": [
            {
                "name": each.name,
                "waits_for": each.because or None,
                "conflicts": [{"path": lossless(p), "kind": kind} for p, kind in each.paths],
            }
            for each in report.left
        ],
        "taken": [lossless(path) for path in report.taken],
        "left_out": [lossless(path) for path in report.litter],
        "notes": list(report.says),
        "entry": report.entry,
        "dry_run": report.dry_run,
    }


def diff(report: Unrefreshed) -> RenderableType:
    from patchq.render import console

    if not report.edits:
        return console.text("Nothing was edited since the last refresh.")
    return console.diff(report.diff)


def diff_json(report: Unrefreshed) -> dict[str, Any]:
    return {
        "schema": "patchq.diff/1",
        "queue": report.queue,
        "top": report.top,
        "edits": [{"path": lossless(each.path), "kind": each.kind} for each in report.edits],
        "diff": lossless(report.diff),
    }


def look_rows(look: Look | None) -> list[tuple[str, str]]:
    """The rows of `patchq status` about the working tree."""
    if look is None:
        return []
    top = f"{look.top} on top, {len(look.applied)} applied" if look.top else "nothing applied"
    rows = [("work", f"{top}; {_near(look.folder)}")]
    if look.pending:
        rows.append(("open", f"{look.pending} conflicts: resolve it and `patchq refresh`"))
    if look.edits:
        rows.append(("edits", f"{named([each.path for each in look.edits], FEW)}: not refreshed"))
    if look.behind:
        rows.append(("", "the series changed since; the next push, pop or refresh goes along"))
    return rows


def look_json(look: Look | None) -> dict[str, Any] | None:
    if look is None:
        return None
    return {
        "tree": look.folder,
        "top": look.top,
        "applied": list(look.applied),
        "pending": look.pending,
        "behind": look.behind,
        "edits": [{"path": lossless(each.path), "kind": each.kind} for each in look.edits],
    }
