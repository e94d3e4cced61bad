"""Asks all probes: those that may run together at once, the others after them, one by one.

A probe runs in a thread of its own. Some last as long as the others, and see whether the server and
its ranks go on; where one of them says no, nobody waits for the rest: their threads end with the
process.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from patchq.errors import UsageError
from patchq.smoke.asking import Asking, Setting
from patchq.smoke.catalog import PROBES, REPLAY
from patchq.smoke.model import LeftOut, NotRun, Refused, Wrong
from patchq.smoke.questions import Values
from patchq.smoke.report import Blind, Outcome, Probe, Report, State, View, merged

_BROKEN = 500
"""The status from which on it is the server that is at fault, not what was asked."""


def chosen(only: Sequence[str]) -> tuple[Probe, ...]:
    """The probes of these names, in our order; all where none is named. Raises UsageError."""
    known = {probe.name: probe for probe in PROBES}
    for name in only:
        if name not in known:
            raise UsageError(f"there is no probe {name!r}", f"there are: {', '.join(known)}")
    return tuple(probe for probe in PROBES if not only or probe.name in only)


def rounds(
    setting: Setting, probes: Sequence[Probe], count: int, view: View | None = None
) -> Report:
    """The same again and again, each time with the next seed; ends where the server does."""
    seed, done = setting.values.seed, list[Report]()
    for number in range(count):
        done.append(run(replace(setting, values=Values(seed + number)), probes, view))
        if any(each.probe.stops and each.state == "failed" for each in done[-1].outcomes):
            break
    return merged(done)


def run(setting: Setting, probes: Sequence[Probe], view: View | None = None) -> Report:
    """What came of each. Ctrl-C ends it at once; the server is left to itself."""
    if setting.conversation is not None:
        probes = (REPLAY,)
    with suppress(NotRun, Wrong):  # whoever needs them says so
        setting = replace(setting, before=setting.client.metrics())
    going = _Run(setting, view or Blind())
    throughout = [probe for probe in probes if probe.lasts == "throughout"]
    together = [probe for probe in probes if not probe.alone and probe not in throughout]
    watching = [probe for probe in together if probe.lasts]
    others = [probe for probe in together if not probe.lasts]
    over, all_over = threading.Event(), threading.Event()
    going.begin(throughout, all_over)
    going.begin(together, over)
    going.wait(others)
    over.set()
    going.wait(watching)
    for probe in probes:
        if probe.alone:
            going.begin([probe], over)
            going.wait([probe])
    all_over.set()
    going.wait(throughout)
    return Report(
        setting.about,
        setting.profile,
        setting.values.seed,
        tuple(going.end(probe) for probe in probes),
    )


class _Run:
    """The probes under way and done, told to the view as they end."""

    def __init__(self, setting: Setting, view: View) -> None:
        self._setting, self._view = setting, view
        self._ended: queue.Queue[Outcome | Exception] = queue.Queue()
        self._waiting: set[str] = set()
        self._done: dict[str, Outcome] = {}
        self._held: dict[str, Outcome] = {}
        self._stopped = ""

    def begin(self, probes: Iterable[Probe], over: threading.Event) -> None:
        for probe in probes:
            if not self._stopped:
                self._view.begins(probe)
                self._waiting.add(probe.name)
                work = (probe, Asking(self._setting, over), self._ended)
                threading.Thread(target=_work, args=work, daemon=True).start()

    def wait(self, probes: Iterable[Probe]) -> None:
        """Until all of these are done, or one that stops the run has failed."""
        names = {probe.name for probe in probes}
        while names & self._waiting and not self._stopped:
            outcome = self._ended.get()
            if isinstance(outcome, Exception):
                raise outcome
            self._waiting.discard(outcome.probe.name)
            if outcome.state == "failed":
                self._stopped = outcome.probe.stops
            if outcome.broke:
                self._held[outcome.probe.name] = outcome
            else:
                self._finish(outcome)

    def end(self, probe: Probe) -> Outcome:
        """What came of it. Whose server was broken has not failed, where it is known why."""
        if probe.name not in self._done:
            held = self._held.get(probe.name)
            if held is None or self._stopped:
                held = replace(held or Outcome(probe, "not run", ""), state="not run")
                held = replace(held, says=self._stopped)
            self._finish(held)
        return self._done[probe.name]

    def _finish(self, outcome: Outcome) -> None:
        self._done[outcome.probe.name] = outcome
        self._view.ends(outcome)


def _work(probe: Probe, asking: Asking, ended: queue.Queue[Outcome | Exception]) -> None:
    try:
        ended.put(_ask(probe, asking))
    except Exception as bug:
        ended.put(bug)


def _ask(probe: Probe, asking: Asking) -> Outcome:
    began = time.monotonic()
    state: State
    broke = False
    try:
        state, says = "passed", probe.run(asking)
    except Wrong as wrong:
        state, says = "failed", str(wrong)
        broke = isinstance(wrong, Refused) and wrong.status >= _BROKEN
    except NotRun as missed:
        state, says = "not run", str(missed)
    except LeftOut as moot:
        state, says = "left out", str(moot)
    seconds = round(time.monotonic() - began, 3)
    said = dict(asking.evidence), tuple(asking.exchanges)
    return Outcome(probe, state, says, seconds, *said, broke=broke)
