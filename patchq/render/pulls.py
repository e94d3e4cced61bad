"""Results about pull requests for people, by rich. Everything upstream wrote is a stranger's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from patchq.render.console import diff, text
from patchq.render.pulls_parts import STATES, asked, news, numbers, one_line, stops
from patchq.render.tables import proof

if TYPE_CHECKING:
    from patchq.carry.pulls.book import Entry
    from patchq.carry.pulls.model import (
        AddReport,
        FindReport,
        LeftReport,
        ListReport,
        Moved,
        RefreshReport,
    )

STANDS = {
    "same": "as pinned",
    "moved": "moved since it was pinned",
    "held": "moved, held",
    "unknown": "not known",
    "": "",
}


def added(report: AddReport) -> RenderableType:
    key = report.entry.key
    parts: list[RenderableType] = []
    if report.stops:
        parts += stops(report.stops)
        parts.append(text(f"Nothing of {key} was imported.", "bold"))
        return Group(*parts, *asked(report.asked))
    for patch in report.patches:
        parts.append(text(f"{patch.file}  {patch.header.subject}"))
    for path in report.left_out:
        parts.append(text(b"left out: " + path, "dim"))
    parts += [text(f"the base has already: {subject}", "dim") for subject in report.there]
    parts += [text(note, "yellow") for note in report.notes]
    if report.patches:
        parts.append(proof(report.proof))
    verb = "would be" if report.dry_run else "is"
    done = [f"{verb} tracked"] if report.tracked else []
    if report.patches:
        back = any(use.role == "reverts" for use in report.entry.uses)
        count = len(report.patches)
        what = "one patch" if count == 1 else f"{count} patches"
        done.append(f"{verb} taken back by {what}" if back else f"{verb} {what} of the series")
    parts.append(text(f"{key} {' and '.join(done)}.", "bold"))
    parts.append(one_line(report.entry))
    return Group(*parts, *asked(report.asked))


def listed(report: ListReport) -> RenderableType:
    if not report.entries:
        return text("No pull request is tracked. `patchq pr add PR --why TEXT` tracks one.")
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("pull request", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("head", no_wrap=True)
    table.add_column("patches")
    table.add_column("title, and why it is here", ratio=1)
    for each in report.entries:
        pull = each.pull
        state: str = pull.state if pull else "never seen"
        if each.why is None and not each.uses:
            state = "refused"
        told = Text().append(text(pull.title if pull else ""))
        if each.why:
            told.append(text(f"{': ' if told else ''}{each.why}", "dim"))
        if each.decision is not None:
            told.append(text(f"{' ' if told else ''}{_decision(each)}", "yellow"))
        table.add_row(
            text(each.key),
            text(state, STATES.get(state, "")),
            text(_head(each), "bold yellow" if each.stand == "moved" else ""),
            text(", ".join(use.patch for use in each.uses)),
            told,
        )
    return Group(table, *asked(report.asked))


def shown(report: ListReport) -> RenderableType:
    (each,) = report.entries
    pull = each.pull
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(ratio=1)
    rows: list[tuple[str, str]] = [("pull request", each.key)]
    if pull is not None:
        rows += [
            ("title", pull.title),
            ("author", pull.author),
            ("state", pull.state + (", a draft" if pull.draft else "")),
            ("into", ", before: ".join([pull.base, *pull.former_bases])),
            ("labels", ", ".join(pull.labels)),
            ("opened", pull.created_at or ""),
            ("last change", pull.updated_at or ""),
            ("merged", " as ".join(x for x in (pull.merged_at, pull.merge_sha) if x)),
            ("closed", " by ".join(x for x in (pull.closed_at, pull.closed_by) if x)),
            ("replaced by", numbers(pull.replaced_by)),
            ("replaces", numbers(pull.replaces)),
            ("taken back by", numbers(pull.reverted_by)),
            ("takes back", numbers(pull.reverts)),
            ("head", pull.head_sha),
        ]
    rows += [("pinned", each.pin), ("the head is", STANDS[each.stand])]
    rows += [(f"patch ({use.role})", use.file) for use in each.uses]
    rows += [("tracked because", each.why or ""), ("decided", _decision(each))]
    if pull is not None:
        rows.append(("seen by", pull.means))
        rows += [(f"{fact} since", when) for fact, when in sorted(pull.first_seen.items())]
    for name, value in rows:
        if value:
            table.add_row(name, text(value))
    return Group(table, *asked(report.asked))


def refreshed(report: RefreshReport) -> RenderableType:
    parts: list[RenderableType] = []
    for each in report.moved:
        parts += _moved(each)
    parts += stops(report.stops)
    parts += [text(f"{patch.file} was written anew") for patch in report.patches]
    parts += [text(f"{name}: our own edits were kept") for name in report.own_edits]
    parts += [text(f"{file} was dropped: nothing of it is left") for file in report.dropped]
    if report.patches:
        parts.append(proof(report.proof))
    waiting = [each for each in report.moved if each.done == "asked"]
    if report.stops:
        parts.append(text("Nothing was changed.", "bold"))
    elif not any(map(_moved, report.moved)):
        count = len(report.moved)
        parts.append(text(f"{count} pull request{'s' * (count != 1)}: no news.", "bold"))
    for each in waiting:
        key = each.entry.key
        parts.append(text(f"Take it with `patchq pr refresh {key} --accept`, or --hold."))
    return Group(*parts, *asked(report.asked))


def _moved(each: Moved) -> list[RenderableType]:
    if not (each.news or each.done or each.range_diff or each.why):
        return []
    parts: list[RenderableType] = [one_line(each.entry)]
    told = news(each)
    if told:
        parts.append(text(f"  {', '.join(told)}"))
    if each.done or each.range_diff:
        pull = each.entry.pull
        head = pull.head_sha[:12] if pull else ""
        word = {"accepted": "taken", "held": "held"}.get(each.done, "moved")
        parts.append(text(f"  head {word}: {each.entry.pin[:12]} -> {head}", "yellow"))
    if each.why:
        parts.append(text(f"  {each.why}", "dim"))
    if each.range_diff and each.done != "held":
        parts.append(diff(each.range_diff, 2))
    return parts


def found(report: FindReport) -> RenderableType:
    parts: list[RenderableType] = []
    for each in report.candidates:
        line = Text().append(text(f"{each.score:3d}  ", "bold")).append(text(each.key, "cyan"))
        line.append(text(f"  {each.title}"))
        parts.append(line)
        told = "; ".join(f"{reason.says} ({reason.weight:+d})" for reason in each.reasons)
        about = f"{each.state}, {each.author}, {each.updated_at[:10]}"
        parts.append(Padding(text(f"{told}  [{about}]", "dim"), (0, 0, 0, 5)))
    if not report.candidates:
        parts.append(text("Nothing was found that is not tracked or refused."))
    hidden = [f"{count} {what}" for what, count in report.left_out.items() if count]
    if hidden:
        parts.append(text(f"Left out: {', '.join(hidden)}.", "dim"))
    parts += [text(note, "yellow") for note in report.notes]
    return Group(*parts, *asked(report.asked))


def left(report: LeftReport) -> RenderableType:
    line = {
        "dropped": f"{report.key} is not tracked any more.",
        "refused": f"{report.key} is refused: {report.why}.",
    }[report.done]
    return Group(text(line), *(text(note, "yellow") for note in report.notes))


def _head(each: Entry) -> str:
    head = each.pull.head_sha[:10] if each.pull else ""
    if each.stand in ("moved", "held"):
        return f"{each.pin[:10]} -> {head}" + (" (held)" if each.stand == "held" else "")
    return head


def _decision(each: Entry) -> str:
    said = each.decision
    if said is None:
        return ""
    word = "refused" if said.answer == "refuse" else f"{said.evidence[:10]} is held"
    return f"{word}: {said.why}" if said.why else word
