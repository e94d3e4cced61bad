"""What `patchq bench` and `patchq compare` found, for people and as JSON (docs/json.md)."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from patchq.smoke import identity, kept
from patchq.smoke.load import METRICS, value

if TYPE_CHECKING:
    from rich.console import RenderableType

    from patchq.smoke.bench import Bench, Side
    from patchq.smoke.compare import Comparison, Finding, Total
    from patchq.smoke.load import Cell, Metric
    from patchq.smoke.stats import Effect

STYLES = {"better": "green", "same": "green", "worse": "bold red", "inconclusive": "magenta"}
_OPEN = "inconclusive"
_MOST = 6
"""Figures that are named; the table has all."""
_UNITS = {"decode": "tok/s", "ttft": "s", "wall": "s"}
_HEADS = {"decode": "decode, tok/s", "ttft": "first token, s", "wall": "wall, s"}


def comparison_json(found: Comparison) -> dict[str, Any]:
    return {
        "schema": "patchq.compare/1",
        "ok": found.exit_code == 0,
        "runner": identity.maybe_json(found.runner),
        "baseline": identity.maybe_json(found.baseline),
        "verdict": found.verdict,
        "interleaved": found.interleaved,
        "a": kept.described(found.a),
        "b": kept.described(found.b),
        "whole": found.whole,
        "missing": list(found.missing),
        "doubts": list(found.doubts),
        "findings": [_finding(each) for each in found.findings],
        "totals": [_judged(each) for each in found.totals],
    }


def _finding(found: Finding) -> dict[str, Any]:
    cell = found.cell
    return {
        "kind": cell.kind,
        "context": cell.context,
        "concurrency": cell.concurrency,
        "warm": cell.warm,
        "a": found.a,
        "b": found.b,
        **_judged(found),
    }


def _judged(found: Finding | Total) -> dict[str, Any]:
    effect = found.effect
    return {
        "metric": found.metric,
        "ratio": effect.ratio,
        "low": effect.low,
        "high": effect.high,
        "equal_low": effect.equal_low,
        "equal_high": effect.equal_high,
        "drift": effect.drift,
        "spread": effect.spread,
        "rounds": effect.rounds,
        "margin": found.margin,
        "verdict": found.verdict,
        "says": found.says,
    }


def drawn(bench: Bench) -> RenderableType:
    """The sides, then for each cell a line for each side: medians, least and most."""
    from rich.console import Group
    from rich.table import Table

    from patchq.render.console import text

    parts: list[RenderableType] = [text(_head(side)) for side in bench.sides]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("asked", no_wrap=True)
    table.add_column("of", no_wrap=True)
    for metric in METRICS:
        table.add_column(_HEADS[metric], justify="right", no_wrap=True)
    for cell in dict.fromkeys(visit.cell for visit in bench.visits):
        for number, side in enumerate(bench.sides):
            cells = [_middle(bench, number, cell, metric) for metric in METRICS]
            table.add_row(cell.name, text(side.label), *cells)
    parts.append(table)
    if bench.broken:
        whys = dict.fromkeys(
            each.broke for visit in bench.visits for each in visit.taken if each.broke
        )
        parts += [text(f"{bench.broken} requests broke:", "bold red"), *map(text, whys)]
    if bench.stopped:
        parts.append(text(f"not all was measured: {bench.stopped}", "bold red"))
    return Group(*parts)


def _head(side: Side) -> str:
    known = [f"{side.label}: {side.about.url} serves {side.about.model}"]
    if side.tree:
        known.append(f"tree {side.tree[:12]}")
    if side.template:
        known.append(f"template {side.template[:12]}")
    if side.draft_tokens is not None:
        known.append(f"{side.draft_tokens:g} draft tokens, {side.acceptance:.1%} accepted")
    return ", ".join(known)


def _middle(bench: Bench, side: int, cell: Cell, metric: Metric) -> str:
    values = [
        figure
        for visit in bench.visits
        if visit.side == side and visit.cell == cell
        if (figure := value(visit.taken, metric)) is not None
    ]
    if not values:
        return "-"
    middle = _figure(statistics.median(values))
    return f"{middle} ({_figure(min(values))} to {_figure(max(values))})"


def _figure(number: float) -> str:
    return f"{number:.0f}" if number >= 1000 else f"{number:.3g}"


def compared(found: Comparison) -> RenderableType:
    """The sides, a line for each finding, and what they come to."""
    from rich.console import Group

    from patchq.render.console import text

    parts: list[RenderableType] = [text(_head(found.a)), text(_head(found.b)), judged(found)]
    parts += map(text, found.gaps)
    if not found.interleaved:
        parts.append(text("not measured in turns: a drift of the machine is in these figures"))
    parts.append(text(f"B is {_SAYS[found.verdict]}", STYLES[found.verdict]))
    if found.verdict == "inconclusive":
        parts += map(text, found.doubts[len(found.gaps) :])
    elif found.verdict == "same" and (open_ := _unsettled(found)):
        whose = "all together" if found.totals else "what was asked"
        parts.append(text(f"by the wall time of {whose}; by itself not judged: {open_}"))
    return Group(*parts)


def _unsettled(found: Comparison) -> str:
    names = [f"{each.cell.name} {each.metric}" for each in found.findings if each.verdict == _OPEN]
    names += [f"{each.metric} of all" for each in found.totals if each.verdict == _OPEN]
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more


def judged(found: Comparison) -> RenderableType:
    """The table: each metric of each cell, then all cells together."""
    from rich.table import Table

    from patchq.render.console import text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for head, side in (
        ("asked", "left"),
        ("", "left"),
        ("A", "right"),
        ("B", "right"),
        ("B against A", "right"),
        ("verdict", "left"),
    ):
        table.add_column(head, justify="right" if side == "right" else "left", no_wrap=True)
    table.add_column("", overflow="fold")
    for each in found.findings:
        table.add_row(
            each.cell.name,
            f"{each.metric}, {_UNITS[each.metric]}",
            _figure(each.a),
            _figure(each.b),
            _change(each.effect),
            text(each.verdict, STYLES[each.verdict]),
            text(each.says),
        )
    for total in found.totals:
        verdict = text(total.verdict, STYLES[total.verdict])
        table.add_row(
            "all together", total.metric, "", "", _change(total.effect), verdict, text(total.says)
        )
    return table


def _change(effect: Effect) -> str:
    return f"{effect.ratio - 1:+.1%} ({effect.low - 1:+.1%} to {effect.high - 1:+.1%})"


_SAYS = {
    "better": "better than A",
    "worse": "worse than A",
    "same": "the same as A",
    "inconclusive": "not judged",
}
