"""The report of `patchq gate --html`: one page that asks nobody for anything."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from patchq.render import html
from patchq.render import report_html_plots as plotting
from patchq.render.gate import SAYS, about
from patchq.smoke.gate_forms import Figures, Probed, middles

if TYPE_CHECKING:
    from patchq.smoke.gate import Examined
    from patchq.smoke.gate_forms import Compared
    from patchq.smoke.gate_model import State
    from patchq.smoke.load import Cell, Metric
    from patchq.smoke.stats import Verdict

TEMPLATE = "report.html.jinja"
_LONG = {"asked": "asked", "reasoning": "thought", "content": "answer", "broke": "broken off"}
"""What of an exchange is shown as a text, and what it is called."""
_WORDS: Mapping[Metric, str] = {"decode": "decode", "ttft": "first token", "wall": "wall"}
_GRAVE: tuple[Verdict, ...] = ("worse", "inconclusive", "better", "same")
_SHORT = {"first_token_s": "first token (s)", "seconds": "all (s)"}
_FIRST: tuple[State, ...] = ("failed", "unfinished", "ok")
_ORDER = {"failed": 0, "not run": 1, "passed": 2, "left out": 3}


@dataclass(frozen=True)
class Row:
    """A cell's figures: of each metric this runner's and the last release's, "" for none."""

    name: str
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Lines:
    """What a log said: whose, and the lines."""

    whose: str
    told: tuple[str, ...]


def page(examined: Examined) -> str:
    """The whole page, in HTML."""
    environment = html.environment()
    environment.filters["text"] = _text
    return environment.get_template(TEMPLATE).render(_told(examined))


def _told(examined: Examined) -> dict[str, Any]:
    gate, found = examined.gate, examined.found
    this, last = figures(examined)
    plots = plotting.plots(this, last)
    other = f"release {gate.last}" if gate.last is not None else "the other"
    accepted = {each.rule for each in gate.findings if each.ok}
    probes = found.smoke.probes if found.smoke else ()
    return {
        "gate": gate,
        "about": about(examined),
        "findings": sorted(gate.findings, key=lambda each: _FIRST.index(each.state)),
        "says": SAYS[gate.exit_code],
        "verdict": {0: "ok", 5: "failed", 6: "unfinished"}[gate.exit_code],
        "refused": [kind for kind in found.kept if f"{kind}.runner" not in accepted],
        "smoke": found.smoke,
        "probes": sorted(probes, key=lambda probe: _ORDER[probe.state]),
        "counts": _counts(probes),
        "logs": list(_logs(probes)),
        "plots": plots,
        "used": {line.whose for plot in plots for line in plot.lines},
        "plotting": plotting,
        "rows": _rows(this, last),
        "other": other,
        "columns": ["this runner", other] if last else ["this runner"],
        "heads": plotting.HEADS,
        "compare": found.compare,
        "changes": _changes(found.compare) if found.compare else [],
        "bench": found.bench,
        "long": _LONG,
        "short": _SHORT,
    }


def figures(examined: Examined) -> tuple[Figures, Figures]:
    """This runner's, and the last release's: as the comparison has them, where it has them."""
    found, before = examined.found, examined.expected.last
    this = {cell: dict(each) for cell, each in middles(found.bench).items()} if found.bench else {}
    last = {cell: dict(each) for cell, each in before.figures.items()} if before else {}
    for each in found.compare.figures if found.compare else ():
        this.setdefault(each.cell, {})[each.metric] = each.b
        last.setdefault(each.cell, {})[each.metric] = each.a
    return this, last


def _rows(this: Figures, last: Figures) -> list[Row]:
    def told(figures: Figures, cell: Cell, metric: Metric) -> str:
        value = figures.get(cell, {}).get(metric)
        return "" if value is None else plotting.figure(value)

    cells = sorted(
        {*this, *last}, key=lambda each: (each.kind, each.concurrency, each.context, each.warm)
    )
    return [
        Row(
            cell.name,
            tuple((told(this, cell, each), told(last, cell, each)) for each in plotting.HEADS),
        )
        for cell in cells
    ]


def _changes(compare: Compared) -> list[tuple[str, str, str, str, str]]:
    """Of each figure, the gravest first: cell, metric, change and its interval, verdict, why."""
    found = sorted(compare.judged, key=lambda pair: _GRAVE.index(pair[1].verdict))
    return [
        (
            where,
            _WORDS[each.metric],
            f"{each.ratio - 1:+.1%} ({each.low - 1:+.1%} to {each.high - 1:+.1%})",
            each.verdict,
            each.says,
        )
        for where, each in found
    ]


def _counts(probes: Sequence[Probed]) -> str:
    states = [probe.state for probe in probes]
    told = [f"{states.count(state)} {state}" for state in _ORDER if state in states]
    return ", ".join(told)


def _logs(probes: Sequence[Probed]) -> Iterator[Lines]:
    """The lines of logs that probes kept as evidence, under `lines`, by node or not."""
    for probe in probes:
        kept = probe.evidence.get("lines")
        for whose, told in kept.items() if isinstance(kept, Mapping) else [("", kept)]:
            if isinstance(told, list) and told:
                name = f"{probe.name}, {whose}" if whose else probe.name
                yield Lines(name, tuple(map(str, told)))


def _text(value: Any) -> str:
    """A JSON value for people."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=None)
