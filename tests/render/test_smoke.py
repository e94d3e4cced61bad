"""Probes on a terminal: where each is, and nothing that a server says does harm."""

from __future__ import annotations

from rich.console import Console

from patchq.render.smoke import Watched, drawn
from patchq.smoke.catalog import PROBES
from patchq.smoke.model import About
from patchq.smoke.report import Outcome, Report

SOME = UP, PROGRESS, RECALL = tuple(
    probe for probe in PROBES if probe.name in ("up", "progress", "recall")
)


def told(drawing: object) -> str:
    console = Console(width=120, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(drawing)
    return captured.get()


def test_each_probe_is_shown_as_it_goes() -> None:
    view = Watched(SOME)
    view.begins(UP)
    view.begins(RECALL)
    view.ends(Outcome(RECALL, "failed", "it answers 'lock', not 'amber 42'", 2.5))
    lines = [line.split() for line in told(view.table()).splitlines()]
    assert lines[0][:2] == ["asking", "up"] and lines[0][-1] == "/health"
    assert lines[1] == ["waiting", "progress"]
    assert lines[2][:4] == ["failed", "recall", "2.5", "s"]


def test_what_a_server_says_is_harmless() -> None:
    about = About("http://x", "m\x1b[2J", None, None)
    evil = Outcome(RECALL, "failed", "it answers '\x1b]0;pwned\x07[bold]'")
    text = told(drawn(Report(about, None, 1, (evil,))))
    assert "\x1b" not in text and "\x07" not in text
    assert "[bold]" in text and "rule: the answer is the code" in text


def test_the_lines_of_a_log_stand_below_the_probe_that_found_them() -> None:
    lines = {"spark-b": [f"ERROR {number} \x1b[2J" for number in range(9)]}
    outcome = Outcome(RECALL, "failed", "it says no", evidence={"lines": lines})
    text = told(drawn(Report(About("http://x", "m"), None, 1, (outcome,))))
    assert "spark-b| ERROR 8" in text and "ERROR 3" not in text
    assert "\x1b" not in text
