"""A bisection for people and as JSON (docs/json.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from patchq.bisect.model import Move
from patchq.bisect.run import Report
from patchq.bisect.session import Result, Session, Trial

if TYPE_CHECKING:
    from rich.console import RenderableType

_MOST = 20
"""Moves of a list that people read."""


def as_json(report: Report) -> dict[str, Any]:
    session, culprit = report.session, report.culprit
    ends = [each for each in session.trials if each not in report.trials]
    return {
        "schema": "patchq.bisect/1",
        "state": "open" if report.answer is None else "found" if culprit else "unsure",
        "between": _between(session),
        "culprit": _move(culprit) if culprit else None,
        "confidence": round(report.confidence, 6),
        "partners": [_move(each) for each in report.partners],
        "suspects": [
            {**_move(move), "confidence": round(chance, 6)} for move, chance in report.suspects
        ],
        "why": _why(report) or None,
        "builds": report.builds,
        "runs": report.runs,
        "skipped": report.skipped,
        "ends": {"builds": len(ends), "runs": sum(each.bad + each.good for each in ends)},
        "rounds": session.rounds,
        "steps": [{"step": each.step, "moves": sorted(each.moves)} for each in report.steps],
        "trials": [_trial(each) for each in session.trials],
        "folder": str(report.folder),
        "reproduce": report.reproduce,
    }


def moves_json(session: Session) -> dict[str, Any]:
    return {
        "schema": "patchq.bisect-moves/1",
        "between": _between(session),
        "moves": [{**_move(each), "needs": sorted(each.needs)} for each in session.moves],
    }


def step_json(result: Result, path: str) -> dict[str, Any]:
    return {
        "schema": "patchq.bisect-step/1",
        "bisection": result.key,
        "step": result.after.step,
        "file": path,
        "before": _trial(result.before),
        "after": _trial(result.after),
    }


def drawn(report: Report) -> RenderableType:
    """The culprit, how sure that is, what it took; or what is next."""
    return _lines(_said(report))


def moves_drawn(session: Session) -> RenderableType:
    count = len(session.moves)
    a, b = session.labels
    lines = [f"{count} thing{'s' if count != 1 else ''} moved from {a} to {b}"]
    lines += _listed(session.moves)
    return _lines(lines)


def step_drawn(result: Result, path: str) -> RenderableType:
    return _lines([f"step {result.after.step}: {_counts(result.after)}", f"  {path} is written"])


def _said(report: Report) -> Iterator[str]:
    session = report.session
    a, b = session.labels
    if report.answer is None:
        yield f"{report.todo.says if report.todo else ''} ({a} to {b})"
        for each in report.steps:
            yield f"  {each.step}  {a} with {len(each.moves)} of {len(session.moves)} moves"
        return
    if culprit := report.culprit:
        yield f"it is {culprit.name} ({culprit.kind}): {culprit.says}"
        if culprit.url:
            yield f"  {culprit.url}"
        for move in report.partners:
            yield f"  only together with {move.name} ({move.kind}): {move.says}"
    else:
        yield f"it is one of these {len(report.suspects)}:"
        yield from _listed([move for move, _ in report.suspects])
    if why := _why(report):
        yield f"  {why}"
    runs, skipped = report.runs, report.skipped
    yield (
        f"  sure to {report.confidence:.1%}, after {report.builds} builds and {runs} runs"
        + (f"; {skipped} subsets could not be tried" if skipped else "")
    )
    yield f"  again: {report.reproduce}"


def _why(report: Report) -> str:
    if report.answer is None:
        return ""
    return report.answer.partly or getattr(report.answer.end, "why", "")


def _listed(moves: Sequence[Move]) -> list[str]:
    lines = [f"  {each.kind:12}  {each.says}" for each in moves[:_MOST]]
    if len(moves) > _MOST:
        lines.append(f"  and {len(moves) - _MOST} more (--json has all)")
    return lines


def _counts(trial: Trial) -> str:
    if trial.skipped is not None:
        return f"it cannot be tried: {trial.skipped}"
    return f"{trial.bad} of {trial.bad + trial.good} runs show the fault"


def _between(session: Session) -> dict[str, Any]:
    a, b = session.labels
    return {
        "a": {"label": a, "commit": session.asked.a},
        "b": {"label": b, "commit": session.asked.b},
    }


def _move(move: Move) -> dict[str, Any]:
    return {"kind": move.kind, "name": move.name, "says": move.says, "url": move.url}


def _trial(trial: Trial) -> dict[str, Any]:
    return {
        "step": trial.step,
        "moves": sorted(trial.moves),
        "bad": trial.bad,
        "good": trial.good,
        "late": trial.late,
        "skipped": trial.skipped,
        "tree": trial.tree,
        "lock": trial.lock,
    }


def _lines(lines: Iterator[str] | Sequence[str]) -> RenderableType:
    from rich.console import Group

    from patchq.render.console import text

    return Group(*(text(line) for line in lines))
