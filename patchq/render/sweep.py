"""What `patchq bench --sweep` found, for people and as JSON (docs/json.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from patchq.render import bench as shown
from patchq.smoke import kept
from patchq.smoke.sweep import Swept, answer

if TYPE_CHECKING:
    from rich.console import RenderableType

    from patchq.smoke.compare import Comparison
    from patchq.smoke.sweep import Answer

_SAYS: dict[Answer, tuple[str, str]] = {
    "better": ("is better", "green"),
    "worse": ("is worse", "bold red"),
    "mixed": ("is better for some and worse for others", "magenta"),
    "same": ("makes no difference", "green"),
    "inconclusive": ("is not judged: more rounds, or a quieter machine", "magenta"),
}
_MOST = 6
"""Cells that the answer names of each kind; the table has all."""


def as_json(found: Swept) -> dict[str, Any]:
    return {
        "schema": "patchq.sweep/1",
        "ok": found.exit_code == 0,
        "setting": found.setting,
        "values": list(found.values),
        "cluster": found.cluster,
        "profile": found.profile,
        "restored": found.restored,
        "answers": [
            {
                "value": found.values[number],
                "against": found.values[0],
                "answer": answer(each),
                "compare": shown.comparison_json(each),
            }
            for number, each in enumerate(found.comparisons, 1)
        ],
        "bench": kept.as_json(found.bench),
    }


def drawn(found: Swept) -> RenderableType:
    """The figures of all values; for each after the first what it does, where, by how much."""
    from rich.console import Group

    from patchq.render.console import text

    parts: list[RenderableType] = [shown.drawn(found.bench)]
    for each in found.comparisons:
        says, style = _SAYS[answer(each)]
        parts += [text(""), shown.judged(each)]
        parts.append(text(f"{each.b.label} {says} (against {each.a.label})", style))
        parts += [text(line) for line in _where(each)]
    if found.restored is not None:
        parts.append(text(f"what ran before does not run again: {found.restored}", "bold red"))
    return Group(*parts)


def _where(found: Comparison) -> list[str]:
    lines = []
    for verdict in ("better", "worse"):
        told = [
            f"{each.metric} of all {_by(each.effect.ratio)}"
            for each in found.totals
            if each.verdict == verdict
        ]
        cells = sorted(
            (each for each in found.findings if each.verdict == verdict),
            key=lambda each: -abs(each.effect.ratio - 1),
        )
        told += [
            f"{each.cell.name} {each.metric} {_by(each.effect.ratio)}" for each in cells[:_MOST]
        ]
        if len(cells) > _MOST:
            told.append(f"and {len(cells) - _MOST} more")
        if told:
            lines.append(f"  {verdict}: {', '.join(told)}")
    return lines


def _by(ratio: float) -> str:
    return f"{ratio - 1:+.1%}"
