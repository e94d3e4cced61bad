"""Results for people on a terminal, by rich."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from patchq.carry import rangediff
from patchq.render import sessions, words
from patchq.render.console import diff, lines, text

if TYPE_CHECKING:
    from patchq.carry.inspect import CheckReport, HistoryReport, StatusReport
    from patchq.carry.report import PatchReport, Proof, SyncReport
    from patchq.queue.patch import Patch
    from patchq.queue.series import Series


def sync(report: SyncReport, *, diffs: bool = True, committed: bool = False) -> RenderableType:
    """The report of a sync: a table, what asks for a decision, the proof, what to type."""
    parts: list[RenderableType] = []
    if report.recovered:
        parts.append(text(report.recovered, "yellow"))
    if report.patches and report.changed:
        parts.append(_patches(report))
        parts += [_conflicts(patch, report) for patch in report.patches if patch.conflicts]
        if diffs and not report.session:
            parts += [
                _range_diff(patch)
                for patch in report.patches
                if rangediff.changes_lines(patch.range_diff)
            ]
        parts.append(proof(report.proof))
    parts.append(text(words.headline(report), "bold"))
    parts += [text(line, "yellow") for line in words.held(report)]
    parts += sessions.notes(report)
    if not report.upstream.complete:
        parts.append(
            text(
                f"Upstream was not reached: as of {report.upstream.when:%Y-%m-%d %H:%M} UTC.",
                "yellow",
            )
        )
    parts += [text(note, "yellow") for note in report.upstream.notes]
    parts += [text(step) for step in words.next_steps(report, committed=committed)]
    return Group(*parts)


def _patches(report: SyncReport) -> Table:
    table = Table(title=None, box=None, pad_edge=False, header_style="dim")
    for name in ("#", "patch", "verdict", "carry", "done"):
        table.add_column(name, no_wrap=name != "patch", justify="right" if name == "#" else "left")
    table.add_column("why", ratio=1)
    for patch in report.patches:
        style = words.STYLES.get("conflict" if patch.conflicts else patch.verdict, "")
        table.add_row(
            f"{patch.number:04d}",
            text(patch.name),
            text(patch.verdict, style),
            patch.carry or "",
            words.DID[patch.action],
            text(words.reason(patch), "dim"),
        )
    return table


def _conflicts(patch: PatchReport, report: SyncReport) -> RenderableType:
    clashes = {clash.path: clash for clash in patch.clashes}
    parts: list[RenderableType] = [text(f"{patch.name} conflicts:", "bold red")]
    for conflict in patch.conflicts:
        line = Text("  ").append(text(conflict.path)).append(text(f": {conflict.kind}"))
        for place, cause in enumerate(conflict.causes):
            line.append(text(f"{', and' if place else ''} since {cause.told}"))
        parts.append(line)
        if conflict.path in clashes:
            file = f"{patch.number:04d}-{patch.name}.patch"
            parts.append(sessions.sides(clashes[conflict.path], report.base_to, file))
    return Group(*parts)


def _range_diff(patch: PatchReport) -> RenderableType:
    return Group(
        text(f"{patch.number:04d} {patch.name}: {words.difference(patch)}", "bold"),
        diff(patch.range_diff, 2),
    )


def proof(value: Proof) -> RenderableType:
    if not value.checks:
        return Text("The proof was not made.", style="dim")
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for check in value.checks:
        mark = text("ok", "green") if check.ok else text("FAILED", "bold red")
        table.add_row(mark, text(check.name), text(check.detail, "dim" if check.ok else ""))
    return table


def check(report: CheckReport) -> RenderableType:
    verdict = "holds" if report.proof.ok else "does not hold"
    style = "bold" if report.proof.ok else "bold red"
    return Group(
        proof(report.proof),
        text(f"{report.queue} on {report.base} {verdict}; its tree is {report.tree}", style),
    )


def status(report: StatusReport, more: Sequence[tuple[str, str]] = ()) -> RenderableType:
    """`more` are rows about the working tree."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True, style="dim")
    table.add_column(ratio=1)
    table.add_row("queue", text(f"{report.queue} ({report.source})"))
    table.add_row("base", text(report.base))
    table.add_row(
        "patches", f"{report.applied} applied, {len(report.held)} held, {report.retired} retired"
    )
    for name, why in report.held:
        table.add_row("held", text(f"{name}: {why}"))
    table.add_row(
        "tree",
        text(report.tree)
        if report.proved
        else text("the series was changed since it was proved; `patchq check` looks", "yellow"),
    )
    for name, told in more:
        table.add_row(name, text(told))
    return table


def series(value: Series, mark: Callable[[str], str] | None = None) -> RenderableType:
    """`mark` tells how a patch stands in the working tree."""
    if not value.all:
        return Text(
            "The series is empty: `patchq new NAME` starts a patch, `patchq import` brings some in."
        )
    held = value.held
    table = Table(box=None, pad_edge=False, header_style="dim")
    if mark is not None:
        table.add_column("", no_wrap=True)
    table.add_column("#", no_wrap=True)
    table.add_column("patch", no_wrap=True)
    table.add_column("topic", no_wrap=True)
    table.add_column("subject", ratio=1)
    for patch in value.all:
        subject = text(patch.header.subject)
        if patch.name in held:
            subject = text(f"held: {held[patch.name]}", "yellow")
        stands = (text("" if patch.name in held else mark(patch.name)),) if mark else ()
        topic = text(patch.header.get("Patchq-Topic"))
        table.add_row(*stands, f"{patch.number:04d}", text(patch.name), topic, subject)
    return table


def show(patch: Patch, held: str | None) -> RenderableType:
    parts: list[RenderableType] = []
    if held is not None:
        parts.append(text(f"held: {held}", "yellow"))
    for key, value in patch.header.fields:
        parts.append(text(f"{key}: {value}", "bold" if key == "Subject" else "dim"))
    parts.append(Text(""))
    if patch.header.body:
        parts += [Text(lines(patch.header.body)), Text("")]
    parts.append(diff(patch.diff))
    return Group(*parts)


def history(report: HistoryReport) -> RenderableType:
    if not report.events:
        return Text("Nothing was recorded here yet; git has what was committed.")
    parts: list[RenderableType] = []
    for event in report.events:
        when = f"{event.when:%Y-%m-%d %H:%M}" if event.when else " " * 16
        number = f"{event.entry:>4}" if event.entry is not None else "    "
        parts.append(text(f"{number}  {when}  {event.what}: {event.detail}"))
        if event.text:
            parts += [text(""), diff(event.text, 6)]
    return Group(*parts)
