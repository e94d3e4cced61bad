"""What `patchq doctor` found, for people and as JSON (docs/json.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

    from patchq.doctor.model import Check, Diagnosis

STYLES = {
    "ok": "green",
    "note": "cyan",
    "warning": "yellow",
    "fatal": "bold red",
    "unknown": "magenta",
}


def as_json(found: Diagnosis) -> dict[str, Any]:
    return {
        "schema": "patchq.doctor/1",
        "ok": found.exit_code == 0,
        "checks": [
            {
                "name": check.name,
                "state": check.state,
                "says": check.says,
                "reason": check.reason,
                "remedy": check.remedy,
            }
            for check in found.checks
        ],
    }


def drawn(found: Diagnosis) -> RenderableType:
    """A line for each check; where something is amiss, why and what to do below it."""
    from rich.table import Table

    from patchq.render.console import text

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in found.checks:
        table.add_row(text(check.state, STYLES[check.state]), text(check.name), _told(check))
    return table


def _told(check: Check) -> RenderableType:
    from rich.text import Text

    from patchq.render.console import text

    told = text(check.says)
    if check.reason:
        told = Text.assemble(told, "\n", text(check.reason, "dim"))
    if check.remedy:
        told = Text.assemble(told, "\n", "-> ", text(check.remedy))
    return told
