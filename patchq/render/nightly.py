"""A night for people and as JSON (docs/json.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from patchq.nightly.form import value

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

    from patchq.nightly.alarm import Alarmed
    from patchq.nightly.model import Night, Told
    from patchq.nightly.run import Plan, Ran

STATES = {
    "done": "green",
    "failed": "bold red",
    "asks": "yellow",
    "unreached": "magenta",
    "late": "bold red",
    "left out": "dim",
}
ENDS = {
    "green": ("green", "the gate is passed"),
    "quiet": ("green", "nothing is new"),
    "asks": ("yellow", "a decision is needed"),
    "red": ("bold red", "something is wrong"),
    "incomplete": ("magenta", "something was not reached, or not asked for"),
    "running": ("magenta", "it is not over"),
}


def as_json(ran: Ran) -> dict[str, Any]:
    """`night.json`, with where it lies and whether a night that was cut short was gone on with."""
    return {**value(ran.night), "folder": str(ran.folder), "resumed": ran.resumed}


def plan_json(plan: Plan) -> dict[str, Any]:
    return {
        "schema": "patchq.night-plan/1",
        "queue": plan.queue,
        "start": plan.start,
        "nights": str(plan.nights),
        "stages": [
            {"name": name, "commands": [["patchq", *each.args] for each in commands]}
            for name, commands in plan.stages.items()
        ],
    }


def told_json(night: Night, told: Told) -> dict[str, Any]:
    return {
        "schema": "patchq.night-told/1",
        "name": night.name,
        "queue": night.queue,
        "state": night.state,
        "pull": told.pull,
        "pushed": told.pushed,
        "issue": told.issue,
        "says": list(told.says),
    }


def alarm_json(queue: str, alarmed: Alarmed) -> dict[str, Any]:
    return {
        "schema": "patchq.night-alarm/1",
        "queue": queue,
        "stale": alarmed.stale,
        "last": alarmed.last,
        "hours": None if alarmed.hours is None else round(alarmed.hours, 1),
        "issue": alarmed.issue,
        "says": list(alarmed.says),
    }


def drawn(ran: Ran) -> RenderableType:
    """A line for each stage, what they come to, and where to look."""
    from rich.console import Group
    from rich.table import Table

    from patchq.render.console import text

    night = ran.night
    style, end = ENDS[night.state]
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    table.add_column(overflow="fold")
    for each in night.stages:
        took = "" if each.state == "left out" else _took(each.seconds)
        table.add_row(
            text(each.name), text(each.state, STATES[each.state]), text(took), text(each.says)
        )
    again = ", gone on with" if ran.resumed else ""
    lines: list[RenderableType] = [
        text(f"night {night.name} of {night.queue}, from {night.start[:12]}{again}")
    ]
    lines.append(table)
    lines.append(text(f"{night.state}: {end}", style))
    if (fault := night.fault) is not None:
        lines.append(text(f"{fault.stage}: {fault.cause}"))
        for culprit in fault.culprits:
            sure = "" if culprit.confidence is None else f" ({culprit.confidence:.0%} sure)"
            lines.append(text(f"  {culprit.kind} {culprit.name}{sure}: {culprit.says}"))
        lines += [text(f"  $ {each}") for each in fault.reproduce]
    lines += [text(each) for each in night.told.says]
    return Group(*lines, text(f"its records: {_shown(ran.folder)}"))


def planned(plan: Plan) -> RenderableType:
    """The commands, a line each."""
    from rich.console import Group

    from patchq.render.console import text

    lines = [text(f"a night of {plan.queue}, from {plan.start[:12]}, in {_shown(plan.nights)}")]
    for name, commands in plan.stages.items():
        if not commands:
            lines.append(text(f"{name}: nothing"))
        lines += [text(f"{name}: patchq {' '.join(each.args)}") for each in commands]
    return Group(*lines, text("nothing was done (--dry-run)"))


def told(night: Night, done: Told) -> RenderableType:
    from rich.console import Group

    from patchq.render.console import text

    says = [text(f"  {each}") for each in done.says] or [text("  there was nothing to tell")]
    return Group(text(f"night {night.name} of {night.queue}: {night.state}"), *says)


def alarmed(queue: str, found: Alarmed) -> RenderableType:
    from rich.console import Group

    from patchq.render.console import text

    style = "bold red" if found.stale else "green"
    head = f"{queue}: {'no night came to an end for too long' if found.stale else 'no alarm'}"
    return Group(text(head, style), *(text(f"  {each}") for each in found.says))


def _took(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s"
    hours, minutes = whole // 3600, whole % 3600 // 60
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {whole % 60:02d} s"


def _shown(path: Path) -> str:
    from pathlib import Path as Paths

    here = Paths.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
