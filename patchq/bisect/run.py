"""Run a bisection: step after step here, or its steps wherever there is room for them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from patchq.bisect import session as sessions
from patchq.bisect.bench import Bench, Skipped
from patchq.bisect.due import Answer, Todo, due, enough
from patchq.bisect.model import Move
from patchq.bisect.search import Found
from patchq.bisect.session import Asked, Result, Session, Trial
from patchq.bisect.trial import Outcome
from patchq.progress import SILENT, Progress

LATE = 3
"""Runs of one subset that do not end, until it is skipped."""


@dataclass(frozen=True)
class Report:
    """What a bisection has come to. Without an `answer` it goes on; `todo`: what is next.

    builds and runs are those beside the ends', which have numbers of their own.
    """

    session: Session
    folder: Path
    answer: Answer | None = None
    todo: Todo | None = None

    @property
    def culprit(self) -> Move | None:
        end = self.answer.end if self.answer else None
        return self._move(end.name) if isinstance(end, Found) else None

    @property
    def confidence(self) -> float:
        """Of the culprit, or of the likeliest suspect."""
        if self.answer is None:
            return 0.0
        end = self.answer.end
        return end.chance if isinstance(end, Found) else max([0.0, *(c for _, c in end.suspects)])

    @property
    def suspects(self) -> tuple[tuple[Move, float], ...]:
        end = self.answer.end if self.answer else None
        return tuple((self._move(name), chance) for name, chance in (end.suspects if end else ()))

    @property
    def partners(self) -> tuple[Move, ...]:
        return tuple(self._move(name) for name in (self.answer.partners if self.answer else ()))

    @property
    def steps(self) -> tuple[Trial, ...]:
        """Those that are next."""
        return tuple(self.session.trial(each) for each in (self.todo.subsets if self.todo else ()))

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All but the ends."""
        ends = (self.session.question.low, self.session.question.top)
        return tuple(each for each in self.session.trials if each.moves not in ends)

    @property
    def builds(self) -> int:
        return sum(each.built for each in self.trials)

    @property
    def runs(self) -> int:
        return sum(each.bad + each.good + each.late for each in self.trials)

    @property
    def skipped(self) -> int:
        return sum(each.skipped is not None for each in self.trials)

    @property
    def reproduce(self) -> str:
        return shlex.join(["patchq", "bisect", *words_of(self.session.asked)])

    @property
    def exit_code(self) -> int:
        return 0 if self.answer is None or self.culprit is not None else 4

    def _move(self, name: str) -> Move:
        return next(each for each in self.session.moves if each.name == name)


def words_of(asked: Asked) -> list[str]:
    """The options that ask the same."""
    plain = Asked(asked.run, asked.a, asked.b)
    found = ["--between", asked.a[:12], asked.b[:12], "--run", asked.run]
    for option, name in (
        ("--queue", "queue"),
        ("--cluster", "cluster"),
        ("--profile", "profile"),
        ("--target", "target"),
        ("--repeat", "repeat"),
        ("--sure", "sure"),
        ("--false-alarms", "false_alarms"),
        ("--minutes", "minutes"),
    ):
        if (value := getattr(asked, name)) != getattr(plain, name):
            found += [option, f"{value:g}" if isinstance(value, float) else str(value)]
    if asked.skip_codes != plain.skip_codes:
        found += [word for code in asked.skip_codes for word in ("--skip-code", str(code))]
    for option, name in (
        ("--known", "known"),
        ("--minimal", "minimal"),
        ("--source", "source"),
        ("--hang-is-bad", "hang_is_bad"),
    ):
        if getattr(asked, name):
            found.append(option)
    return found


def look(folder: Path, session: Session, wanted: int = 1) -> Report:
    """Where it stands, and up to `wanted` steps that may be done at the same time."""
    asked = session.asked
    found = due(
        session.question,
        session.tried,
        known=asked.known,
        minimal=asked.minimal,
        wanted=wanted,
    )
    if isinstance(found, Answer):
        return Report(session, folder, answer=found)
    return Report(session, folder, todo=found)


def search(folder: Path, session: Session, bench: Bench, progress: Progress = SILENT) -> Report:
    """Step after step until there is an answer. Whatever ends it, what was seen is kept."""
    while True:
        report = look(folder, session)
        if report.todo is None:
            bench.clear()
            return report
        progress.step(_stands(report))
        session = replace(session, rounds=session.rounds + 1)

        def keep(trial: Trial, before: Session = session) -> Session:
            after = before.put(trial)
            sessions.save(folder, after)
            return after

        moves = report.todo.subsets[0]
        session = keep(attempt(session, moves, bench, keep, progress))


def attempt(
    session: Session,
    moves: frozenset[str],
    bench: Bench,
    keep: Callable[[Trial], object],
    progress: Progress = SILENT,
) -> Trial:
    """Make a subset and run it until it is clear, or --repeat is reached. `keep` gets it each time.

    Raises PatchqError where something else than the subset is at fault.
    """
    trial = session.trial(moves)
    try:
        with bench.ready(moves, progress) as ready:
            trial = replace(trial, built=True, tree=ready.tree, lock=ready.lock)
            for number in range(session.asked.repeat + LATE):
                done = trial.bad + trial.good - session.trial(moves).bad - session.trial(moves).good
                tried = session.put(trial).tried
                if done >= session.asked.repeat or (
                    number and enough(session.question, tried, moves)
                ):
                    break
                progress.step(f"step {trial.step}: run {done + 1}", done, session.asked.repeat)
                trial = counted(trial, ready.once(), session.asked)
                keep(trial)
                if trial.skipped is not None:
                    break
    except Skipped as error:
        trial = replace(trial, skipped=error.why, built=trial.built or error.built)
        keep(trial)
    return trial


def counted(trial: Trial, outcome: Outcome, asked: Asked) -> Trial:
    """The trial with one more run."""
    if outcome == "bad":
        return replace(trial, bad=trial.bad + 1)
    if outcome == "good":
        return replace(trial, good=trial.good + 1)
    if outcome == "skip":
        return replace(trial, skipped="the command says that nothing can be said of it")
    late = trial.late + 1
    why = f"{late} runs did not end within {asked.minutes:g} minutes" if late >= LATE else None
    return replace(trial, late=late, skipped=why)


def try_one(
    folder: Path, session: Session, step: str, bench: Bench, progress: Progress = SILENT
) -> tuple[Path, Result]:
    """Do one step of a bisection that others work on, too: the result's file, for `take`.

    The session itself is only read.
    """
    moves = session.subset(step)
    before = session.trial(moves)
    path = folder / f"{sessions.name_of(moves)}.json"

    def keep(trial: Trial) -> None:
        sessions.give(path, Result(session.asked.key, before, trial))

    after = attempt(session, moves, bench, keep, progress)
    keep(after)
    return path, Result(session.asked.key, before, after)


def name_steps(folder: Path, session: Session, wanted: int) -> Report:
    """Up to `wanted` steps for other machines; `try_one` knows them by their names."""
    report = look(folder, session, wanted)
    issued = report.todo.subsets if report.todo else ()
    if issued != session.issued:
        session = replace(session, issued=issued)
        sessions.save(folder, session)
    return replace(report, session=session)


def take(folder: Path, session: Session, files: Sequence[Path]) -> Session:
    """Bring in what other machines have seen; one that was brought in already changes nothing."""
    after = session
    for result in [sessions.take(path, session) for path in files]:
        if after.trial(result.after.moves) == result.before:
            after = after.put(result.after)
    if after != session:
        after = replace(after, rounds=session.rounds + 1)
        sessions.save(folder, after)
    return after


def _stands(report: Report) -> str:
    assert report.todo is not None
    return f"build {report.builds + 1}: {report.todo.says}"
