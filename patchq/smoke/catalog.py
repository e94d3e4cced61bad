"""The probes, in the order in which they are shown; docs/smoke.md says how to add one."""

from __future__ import annotations

from patchq.smoke.probes import (
    answers,
    cache,
    counters,
    image,
    logs,
    long,
    memory,
    progress,
    ranks,
    replay,
    speculation,
    template,
    thinking,
    tools,
)
from patchq.smoke.report import Probe

PROBES: tuple[Probe, ...] = (
    *progress.PROBES,
    *ranks.PROBES,
    *memory.PROBES,
    *answers.PROBES,
    *thinking.PROBES,
    *tools.PROBES,
    *image.PROBES,
    *template.PROBES,
    *speculation.PROBES,
    *cache.PROBES,
    *long.PROBES,
    *counters.PROBES,
    *logs.PROBES,
)
REPLAY: Probe = replay.REPLAY
"""Asked where a conversation is given, and then alone."""
