"""A night at work: its commands run one after the other, and what they left is looked at."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from patchq.forge.client import TOKENS
from patchq.nightly import kept, stages, step
from patchq.nightly.model import Stage, StageState
from patchq.nightly.settings import Settings
from patchq.nightly.stages import Command
from patchq.progress import SILENT, Progress

Program = Callable[[Sequence[str]], Sequence[str]]
"""What runs patchq with these arguments."""
STOP = 600.0
"""Seconds that `cluster stop` may take."""
SERVING = "serving"
"""In the folder of all nights: the cluster on which a night has started a runner."""
_LARGEST = 256 << 20
_WORST: tuple[StageState, ...] = ("left out", "done", "unreached", "late", "asks", "failed")


def patchq(args: Sequence[str]) -> Sequence[str]:
    """This very patchq, whatever lies in the folder that it is run in (a clone of it, say)."""
    return (sys.executable, "-P", "-m", "patchq.cli.main", *args)


def utc() -> datetime:
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class Place:
    """Where a night works: the project, all nights, its own folder."""

    root: Path
    nights: Path
    folder: Path

    @property
    def clone(self) -> Path:
        return self.folder / kept.QUEUE

    @property
    def serving(self) -> Path:
        return self.nights / SERVING


@dataclass(frozen=True)
class Said:
    """What became of one command: of its stage, in a sentence, and the object that it gave."""

    command: str
    state: StageState
    says: str
    exit: int
    value: Mapping[str, Any]


@dataclass
class Shift:
    """One stage while it runs: the time that is left to it, and what its commands have said."""

    name: str
    limit: float
    began: datetime = field(default_factory=utc)
    since: float = field(default_factory=time.monotonic)
    said: list[Said] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    reports: list[Path] = field(default_factory=list)
    """Files beside those of the commands, where they are there."""

    @property
    def left(self) -> float:
        return max(0.0, self.limit - (time.monotonic() - self.since))

    def ended(self, state: StageState | None = None, says: str = "") -> Stage:
        """The stage as it is now; the worst of its commands decides, of those alike the first."""
        decides = max(self.said, key=lambda each: _WORST.index(each.state), default=None)
        if decides is not None:
            state, says = state or decides.state, says or decides.says
        order = [decides, *self.said] if decides else []
        files = [f"{each.command}.{end}" for each in order for end in ("json", "log")]
        files += [each.name for each in self.reports if each.is_file()]
        return Stage(
            self.name,
            state or "done",
            stamp(self.began),
            round(time.monotonic() - self.since, 1),
            "; ".join([*self.notes, says])[:2000],
            decides.exit if decides else None,
            tuple(dict.fromkeys(files)),
        )


class Work:
    """Runs the commands of one night, and knows whether it has left a runner on the cluster."""

    def __init__(
        self,
        place: Place,
        settings: Settings,
        program: Program = patchq,
        progress: Progress = SILENT,
        grace: float = step.GRACE,
    ) -> None:
        self.place = place
        self.settings = settings
        self.serves = False
        self._program = program
        self._progress = progress
        self._grace = grace

    def shift(self, name: str) -> Shift:
        return Shift(name, self.settings.minutes[name] * 60)

    def run(self, shift: Shift, command: Command) -> Said:
        """Run a command of a stage, within the time that is left to it."""
        self._progress.step(f"{shift.name}: patchq {' '.join(command.args[:2])}")
        said = self._said(command, max(shift.left, 0.5), shift.limit)
        shift.said.append(said)
        return said

    def look(self, command: Command, limit: float) -> Said:
        """Run a command that belongs to no stage."""
        return self._said(command, limit, limit)

    def start(self, shift: Shift) -> bool:
        """Let the cluster serve, where this night does not see to it already."""
        if self.serves:
            return True
        self.stop()
        with kept.room(self.place.nights):
            self.place.serving.write_text(self.settings.cluster, encoding="ascii")
        said = self.run(shift, stages.start(self.settings))
        self.serves = said.state == "done"
        if said.value.get("schema") == "patchq.error/1":
            # Nothing was started: what runs there is somebody else's.
            self.place.serving.unlink(missing_ok=True)
        return self.serves

    def stop(self) -> None:
        """Stop what a night has started, this one or one that was killed; nothing else."""
        try:
            cluster = self.place.serving.read_text(encoding="ascii").strip()
        except (FileNotFoundError, NotADirectoryError):
            return
        self.serves = False
        self._progress.step(f"stopping {cluster}")
        said = self._said(stages.stop(cluster), STOP, STOP)
        if said.state == "done":
            self.place.serving.unlink(missing_ok=True)

    def _said(self, command: Command, left: float, limit: float) -> Said:
        place = self.place
        out = place.folder / f"{command.name}.json"
        inside = place.clone.is_dir() and not command.project
        with kept.room(place.folder):
            ended = step.run(
                self._program(command.args),
                cwd=place.clone if inside else place.root,
                out=out,
                log=place.folder / f"{command.name}.log",
                busy=place.nights / "busy",
                limit=left,
                env=_environment(tokens=command.tokens),
                grace=self._grace,
                tell=lambda line: self._progress.step(f"{command.name}: {line[:200]}"),
            )
        value = parsed(out)
        state, says = stages.meaning(command.name, ended, value, limit)
        if state == "done" and not value:
            state, says = "failed", f"{command.name} ended with 0, and gave no result"
        return Said(command.name, state, says, ended.code, value)


def parsed(path: Path) -> Mapping[str, Any]:
    """The JSON object in a file; empty where there is none."""
    with suppress(OSError, ValueError, RecursionError):
        if path.stat().st_size <= _LARGEST:
            value = json.loads(path.read_bytes())
            return value if isinstance(value, dict) else {}
    return {}


def _environment(*, tokens: bool) -> dict[str, str]:
    """Upstream's code runs in most stages: it gets no token."""
    return {key: value for key, value in os.environ.items() if tokens or key not in TOKENS}


@contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGTERM do what Ctrl-C does; both, also where they were to be ignored."""
    import signal
    import threading

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        each: signal.signal(each, signal.default_int_handler)
        for each in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler if handler is not None else signal.SIG_DFL)
