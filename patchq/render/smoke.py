"""What `patchq smoke` found, live, for people and as JSON (docs/json.md)."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

    from patchq.smoke.report import Outcome, Probe, Report

STYLES = {
    "passed": "green",
    "failed": "bold red",
    "not run": "magenta",
    "left out": "dim",
    "asking": "cyan",
    "waiting": "dim",
}
_LINES = 5
"""Of each node's log that are shown; the evidence has more."""
_A_SECOND = 4
"""How often the live view is drawn."""


def as_json(report: Report) -> dict[str, Any]:
    from patchq.smoke import identity

    return {
        "schema": "patchq.smoke/1",
        "ok": report.exit_code == 0,
        "server": {
            "url": report.about.url,
            "model": report.about.model,
            "context": report.about.context,
            "version": report.about.version,
        },
        "profile": report.profile,
        "seed": report.seed,
        "rounds": report.rounds,
        "runner": identity.maybe_json(report.runner),
        "probes": [_outcome(outcome) for outcome in report.outcomes],
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    probe = outcome.probe
    return {
        "name": probe.name,
        "state": outcome.state,
        "says": outcome.says,
        "asks": probe.asks,
        "rule": probe.rule,
        "stands_for": probe.stands_for,
        "seconds": outcome.seconds,
        "evidence": dict(outcome.evidence or {}),
        "exchanges": [dict(each) for each in outcome.exchanges],
    }


def drawn(report: Report) -> RenderableType:
    """A line for each probe; below one that failed, its rule and what it stands for."""
    from rich.console import Group

    from patchq.render.console import text

    about = report.about
    held = f", held against {report.profile}" if report.profile else ""
    runner = report.runner
    where = "" if runner is None else f"; runner {runner.lock[:12]} on {runner.cluster}"
    times = f"; {report.rounds} rounds" if report.rounds > 1 else ""
    head = text(f"{about.url} serves {about.model}{held}{where}{times}; --seed {report.seed}")
    return Group(head, _table([_row(each) for each in report.outcomes]))


Row = tuple[str, str, float | None, str, str]
"""State, name, seconds, what it says, and why it matters."""


def _row(outcome: Outcome) -> Row:
    probe = outcome.probe
    why = f"rule: {probe.rule}\nas in: {probe.stands_for}" if outcome.state == "failed" else ""
    if why:
        why = "\n".join([why, *_said(outcome)])
    seconds = outcome.seconds if outcome.seconds else None
    return (outcome.state, probe.name, seconds, outcome.says, why)


def _said(outcome: Outcome) -> list[str]:
    """The last lines of logs that it found, by node."""
    said = (outcome.evidence or {}).get("lines") or {}
    return [f"{node}| {line}" for node, lines in said.items() for line in lines[-_LINES:]]


def _table(rows: Sequence[Row]) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    from patchq.render.console import lines, text

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    table.add_column(overflow="fold")
    for state, name, seconds, says, why in rows:
        told = text(says)
        if why:
            told = Text.assemble(told, "\n", Text(lines(why), "dim"))
        took = "" if seconds is None else f"{seconds:.1f} s"
        table.add_row(text(state, STYLES[state]), text(name), text(took, "dim"), told)
    return table


class Watched:
    """A `patchq.smoke.report.View`: a table on a terminal, a line for each end elsewhere."""

    def __init__(self, probes: Sequence[Probe]) -> None:
        self._begun: dict[str, float] = {}
        self._done: dict[str, Outcome] = {}
        self._probes = probes
        self._live: Live | None = None

    def __enter__(self) -> Watched:
        if sys.stderr.isatty():
            from rich.live import Live

            from patchq.render.console import console

            self._live = Live(
                get_renderable=self.table,
                console=console(stderr=True),
                refresh_per_second=_A_SECOND,
                transient=True,
            )
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def begins(self, probe: Probe) -> None:
        self._begun[probe.name] = time.monotonic()
        self._done.pop(probe.name, None)

    def ends(self, outcome: Outcome) -> None:
        self._done[outcome.probe.name] = outcome
        if self._live is None:
            from patchq.paths import show

            sys.stderr.write(f"{outcome.state}: {outcome.probe.name}: {show(outcome.says)}\n")

    def table(self) -> RenderableType:
        """Where all probes are now."""
        now = time.monotonic()
        return _table([self._now(probe, now) for probe in self._probes])

    def _now(self, probe: Probe, now: float) -> Row:
        if probe.name in self._done:
            return (*_row(self._done[probe.name])[:4], "")
        begun = self._begun.get(probe.name)
        if begun is None:
            return ("waiting", probe.name, None, "", "")
        return ("asking", probe.name, now - begun, probe.asks, "")
