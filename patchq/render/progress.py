"""A progress bar on a terminal, a line now and then elsewhere; on stderr, so stdout stays clean."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from patchq.paths import show

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

PATIENCE = 0.8
"""Seconds before anything is shown: most commands are done by then."""
EVERY = 10.0
"""Seconds between lines where stderr is no terminal."""


class Bar:
    """A `patchq.progress.Progress` that draws; close it before anything else is printed."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._told = self._started
        self._live: RichProgress | None = None
        self._task: Any = None
        self._terminal = sys.stderr.isatty()

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def step(self, what: str, done: int = 0, total: int | None = None, unit: str = "") -> None:
        now = time.monotonic()
        if now - self._started < PATIENCE:
            return
        what = show(what)
        if self._terminal:
            self._draw(what, done, total, unit)
        elif now - self._told >= EVERY:
            self._told = now
            of = f" {_of(done, total, unit)}" if total else ""
            sys.stderr.write(f"{what}{of}\n")

    def _draw(self, what: str, done: int, total: int | None, unit: str) -> None:
        if self._live is None:
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            from patchq.render.console import console

            self._live = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TextColumn("{task.fields[amount]}", markup=False),
                TimeRemainingColumn(),
                console=console(stderr=True),
                transient=True,
            )
            self._live.start()
            self._task = self._live.add_task(what, total=total, amount="")
        amount = _of(done, total, unit) if total else ""
        self._live.update(self._task, description=what, completed=done, total=total, amount=amount)


def _of(done: int, total: int, unit: str) -> str:
    if unit == "B":
        return f"{done / 1e6:.1f} of {total / 1e6:.1f} MB"
    return f"{done} of {total} {unit}".rstrip()
