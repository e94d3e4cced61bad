"""Is it up, and does it go on? Health says only that a process answers."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from patchq.smoke import metrics as names
from patchq.smoke import questions as q
from patchq.smoke.asking import Asking
from patchq.smoke.metrics import Metrics
from patchq.smoke.model import NotRun, Wrong
from patchq.smoke.report import Probe

LOOKS, EVERY = 10, 0.5
"""Looks within the time that counters may stand still, at least; and seconds between two."""


@dataclass(frozen=True)
class Look:
    """A look at the counters: seconds, requests under way, tokens in and out."""

    at: float
    requests: float
    tokens: float


def look(found: Metrics, at: float, ours: int = 0) -> Look:
    """`ours`: requests that we know of; an engine that stopped before them counts none.

    Raises NotRun where the server does not count.
    """
    counted = {
        name: found.total(name)
        for name in (names.RUNNING, names.WAITING, names.PROMPT, names.GENERATED)
    }
    missing = [name for name, value in counted.items() if value is None]
    if missing:
        raise NotRun(f"/metrics has no {', '.join(missing)}")
    running, waiting, read, written = (value or 0.0 for value in counted.values())
    return Look(at, max(running + waiting, ours), read + written)


def still_since(before: Look | None, now: Look) -> Look | None:
    """The look from which on requests are under way and no token came or went; None: it moves."""
    if now.requests <= 0:
        return None
    return before if before is not None and before.tokens == now.tokens else now


def _up(asking: Asking) -> str:
    asking.client.healthy()
    about = asking.setting.about
    asking.evidence["version"] = about.version
    of = f", {about.context} tokens of context" if about.context else ""
    return f"it serves {about.model}{of}"


def _progress(asking: Asking) -> str:
    limit = asking.setting.bounds.standstill
    still: Look | None = None
    seen, most = 0, 0.0
    own = threading.Thread(target=_work, args=(asking,), daemon=True)
    own.start()
    while own.is_alive() or not asking.over.is_set():
        ours = len(asking.client.under_way)
        now = look(asking.client.metrics(), time.monotonic(), ours)
        still = still_since(still, now)
        seen, most = seen + 1, max(most, now.requests)
        asking.evidence.update(looks=seen, most_requests=most, tokens=now.tokens)
        if still is not None and now.at - still.at >= limit:
            raise Wrong(
                f"a wedge: {now.requests:g} requests are under way, and for"
                f" {now.at - still.at:.1f} s no token came or went"
            )
        (own.join if own.is_alive() else asking.over.wait)(min(limit / LOOKS, EVERY))
    return f"tokens went on in {seen} looks, with up to {most:g} requests at once"


def _work(asking: Asking) -> None:
    """Something under way, also where no other probe asks; how it ends is another probe's."""
    try:
        asking.user(q.RECITE)
    except (NotRun, Wrong):
        return


PROBES = (
    Probe(
        "up",
        "/health",
        "it answers 200",
        "a server that is not there",
        _up,
    ),
    Probe(
        "progress",
        "/metrics, all the while that the other probes ask",
        "while requests are under way, token counters go on",
        "/health says 200 while a worker is wedged (MIA #70, EUG #260)",
        _progress,
        lasts="together",
        stops="the server stands still, see progress",
    ),
)
