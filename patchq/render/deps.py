"""What the runner is made of, for people, by rich. Names and versions come from strangers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table

from patchq.paths import show
from patchq.render.console import text
from patchq.render.tables import proof, sync

if TYPE_CHECKING:
    from patchq.carry.deps.model import (
        CheckReport,
        ListReport,
        Newer,
        OutdatedReport,
        Retirement,
        UpdateReport,
    )
    from patchq.judge.needs import Conflict, Need, Solution
    from patchq.upstream.components import Hardware


def listed(report: ListReport) -> RenderableType:
    if not report.parts:
        return text("upstream/dependencies.toml lists nothing.")
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("", no_wrap=True)
    table.add_column("name", no_wrap=True)
    table.add_column("pin", no_wrap=True)
    table.add_column("patches", no_wrap=True)
    table.add_column("why it is here, and where from", ratio=1)
    for each in report.parts:
        told = text(each.why).append(text(f" ({each.origin})", "dim"))
        count = str(len(each.patches)) if each.patches else ""
        table.add_row(
            text(each.kind, "dim"), text(each.name, "bold"), text(each.pin), text(count), told
        )
    head = [text(f"{report.queue} {report.base}{_on(report.hardware)}", "bold")]
    return Group(*head, table)


def checked(report: CheckReport) -> RenderableType:
    solution = report.solution
    parts: list[RenderableType] = [text(sentence(each), "bold red") for each in solution.conflicts]
    if report.would_fit:
        told = ", ".join(f"{name} {version}" for name, version in report.would_fit.items())
        parts.append(text(f"All would fit with {told}.", "green"))
    parts += _waived(solution)
    if report.source_only:
        told = ", ".join(report.source_only)
        parts.append(text(f"No wheel fits, to be built there: {told}.", "dim"))
    if report.by_hand:
        told = ", ".join(report.by_hand)
        parts.append(text(f"Known from dependencies.toml alone: what {told} asks for.", "dim"))
    parts += _missing(report.missing)
    count = len(solution.conflicts)
    verdict = (
        f"{len(solution.versions)} packages fit {report.base}{_on(report.hardware)}, all at once."
        if solution.ok
        else f"{count} contradiction{'s' * (count != 1)} with {report.base}{_on(report.hardware)}."
    )
    parts.append(text(verdict, "bold" if solution.ok else "bold red"))
    return Group(*parts)


def outdated(report: OutdatedReport) -> RenderableType:
    parts: list[RenderableType] = []
    for each in report.parts:
        head = text(each.name, "bold").append(text(f" {_dated(each.pin, each.date)}", "not bold"))
        if each.newer:
            head.append(text(f" -> {_dated(*each.newer[-1])}", "not bold yellow"))
        parts.append(head)
        parts += [Padding(text(line, style), (0, 0, 0, 4)) for line, style in _meaning(each)]
    return Group(*parts, *_retiring(report.retirements), *_missing(report.missing))


def _meaning(each: Newer) -> list[tuple[str, str]]:
    """What a newer release means, a line and its style each."""
    lines = [(each.says, "")] if each.says else []
    if len(each.newer) > 1:
        lines.append((f"{len(each.newer)} newer releases; the newest", "dim"))
    lines += [(f"breaks {sentence(conflict)}", "red") for conflict in _conflicts(each.breaks)]
    if each.newer and each.breaks is not None and each.breaks.ok:
        lines.append(("breaks nothing that is asked for", "green"))
    lines += [(line, "") for line in each.brings]
    lines += [(f"lacks what {show(f.path)} uses: {f.says}", "red") for f in each.findings or ()]
    return lines


def updated(report: UpdateReport) -> RenderableType:
    parts: list[RenderableType] = [
        text(sentence(each), "bold red") for each in _conflicts(report.solution)
    ]
    parts += [text(f"set aside: {each}", "yellow") for each in report.relaxed]
    if not report.contradicted:
        if report.sync is not None:
            parts.append(sync(report.sync))
        parts += [text(line, "dim") for line in report.brings]
        parts += [text(f"{show(f.path)}: {f.says}", "yellow") for f in report.findings]
        parts += _retiring(report.retirements)
        if report.proof.checks:
            parts.append(proof(report.proof))
    parts += _missing(report.missing)
    parts.append(text(headline(report), "bold"))
    if report.recorded:
        parts.append(
            text("`patchq undo` takes it back. Commit upstream/ and series/ when content.")
        )
    elif report.contradicted:
        again = f"patchq deps update {report.name} {report.new} --anyway --why TEXT"
        parts += [text("To go on in spite of it, and record why:"), text(f"  {again}")]
    elif report.sync is not None and report.sync.session is None and _asks(report):
        parts.append(
            text(
                f"`patchq sync --queue {report.name} --onto {report.new}` opens a session for it;"
                " what is to be set aside, update again afterwards."
                if report.relaxed
                else f"`patchq deps update {report.name} {report.new}` opens a session for it."
            )
        )
    return Group(*parts)


def headline(report: UpdateReport) -> str:
    """What the update came to, in one sentence."""
    where = f"{report.name} from {report.old} to {report.new}"
    if report.contradicted:
        return f"{where}: it contradicts what others ask for. Nothing was changed."
    if _asks(report):
        return f"{where}: its patches need your decision. Nothing was changed."
    if report.proof.checks and not report.proof.ok:
        return f"{where}: the proof failed. Nothing was changed."
    if not report.changed:
        return f"{report.name} is at {report.new} already: nothing changed."
    if report.dry_run:
        return f"{where}: would be done. Nothing was changed (--dry-run)."
    return f"{where}: done."


def sentence(conflict: Conflict) -> str:
    """A contradiction as people need it."""
    if conflict.why:
        return f"{conflict.package}: {conflict.why}"
    told = [f"{_who(each)} {_asks_for(each)}" for each in conflict.needs]
    if conflict.package in ("python", "cuda"):
        return f"{conflict.package}: {'; '.join(told)}; [hardware] has another"
    if len(told) == 1:
        return f"{conflict.package}: {told[0]}, and there is no such release"
    return f"{conflict.package}: {'; '.join(told)}"


def _who(need: Need) -> str:
    return show(need.of)


def _asks_for(need: Need) -> str:
    from patchq.judge.requirement import exact, parsed

    version = exact(need.text)
    extras = parsed(need.text).extras
    more = f"[{','.join(sorted(extras))}]" if extras else ""
    if version:
        return f"pins {version}{f' with {more}' if more else ''}"
    return f"needs {more}{parsed(need.text).specifier}"


def _conflicts(solution: Solution | None) -> tuple[Conflict, ...]:
    return solution.conflicts if solution is not None else ()


def _asks(report: UpdateReport) -> bool:
    return report.sync is not None and any(each.action == "ask" for each in report.sync.patches)


def _waived(solution: Solution) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for each in solution.waived:
        told = f"{_who(each.need)} asks for {each.need.text}: {each.by} relaxes it"
        if each.holds:
            told += "; it would hold anyway, so that is not needed any more"
        parts.append(text(told, "yellow"))
    for waiver in solution.idle:
        told = f"{waiver.by} relaxes {waiver.requirement} of {waiver.of}, which asks for no such"
        parts.append(text(told, "yellow"))
    return parts


def _retiring(found: tuple[Retirement, ...]) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for each in found:
        where = f"{each.patch} goes when {each.rule}"
        if not each.holds:
            later = f"it would with {each.by}" if each.by else "nothing there is has it yet"
            parts.append(text(f"{where}: {later}.", "dim"))
            continue
        parts.append(text(f"{where}: that holds ({each.by}).", "cyan"))
        if each.check is None:
            parts.append(text("  It has no check of its own that may run here: look yourself."))
        elif each.check.ok:
            why = f'--why "{each.by}"'
            do = f"patchq delete {each.patch} --queue {each.queue} {why}"
            parts.append(text(f"  Its own check passes without it: `{do}`.", "green"))
        else:
            parts.append(text(f"  It is still needed: {each.check.detail}", "yellow"))
    return parts


def _missing(missing: tuple[str, ...]) -> list[RenderableType]:
    return [text(f"not learned: {each}", "yellow") for each in missing]


def _dated(version: str, date: str) -> str:
    short = version[:12] if len(version) >= 40 else version
    return f"{short} ({date})" if date else short


def _on(hardware: Hardware | None) -> str:
    if hardware is None:
        return ""
    cuda = f", CUDA {hardware.cuda}" if hardware.cuda else ""
    return f" on {hardware.machine}, Python {hardware.python}{cuda}"
