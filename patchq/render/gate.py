"""How the gate decided, for people and as JSON (docs/json.md); as a page: report_html."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from patchq.smoke import identity

if TYPE_CHECKING:
    from rich.console import RenderableType

    from patchq.smoke.gate import Examined

STYLES = {"ok": "green", "failed": "bold red", "unfinished": "magenta"}
SAYS = {0: "the gate is passed", 5: "the gate failed", 6: "the gate was not asked in full"}


def as_json(examined: Examined) -> dict[str, Any]:
    gate = examined.gate
    return {
        "schema": "patchq.gate/1",
        "ok": gate.passed,
        "lock": gate.lock,
        "release": gate.release,
        "last": gate.last,
        "cluster": examined.rules.cluster,
        "profile": examined.rules.profile,
        "runner": identity.maybe_json(gate.identity),
        "findings": [
            {"rule": each.rule, "ok": each.ok, "state": each.state, "says": each.says}
            for each in gate.findings
        ],
        "evidence": [
            {
                "kind": each.kind,
                "path": str(each.path),
                "sha256": each.sha256,
                "when": each.when.isoformat(timespec="seconds") if each.when else None,
            }
            for each in gate.evidence
        ],
    }


def about(examined: Examined) -> str:
    """Which runner it is about, and by what it was held, as one line."""
    gate, rules = examined.gate, examined.rules
    which = f"release {gate.release}, " if gate.release is not None else ""
    against = f", against release {gate.last}" if gate.last is not None else ""
    return f"{which}runner {gate.lock[:16]}: {rules.profile} on {rules.cluster}{against}"


def drawn(examined: Examined) -> RenderableType:
    """A line for each rule, and what they come to."""
    from rich.console import Group
    from rich.table import Table

    from patchq.render.console import text

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for each in examined.gate.findings:
        table.add_row(text(each.state, STYLES[each.state]), text(each.rule), text(each.says))
    code = examined.gate.exit_code
    style = {0: "green", 5: "bold red", 6: "magenta"}[code]
    return Group(text(about(examined)), table, text(SAYS[code], style))
