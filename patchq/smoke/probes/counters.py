"""Did anything end badly that no probe saw?"""

from __future__ import annotations

from patchq.smoke import metrics as names
from patchq.smoke.asking import Asking
from patchq.smoke.metrics import Metrics
from patchq.smoke.model import NotRun, Wrong
from patchq.smoke.report import Probe


def _counters(asking: Asking) -> str:
    before, after = asking.setting.before, asking.client.metrics()
    if before is None:
        raise NotRun("/metrics did not answer at the beginning")
    grown = {"preempted": _of(after, names.PREEMPTED) - _of(before, names.PREEMPTED)}
    old, new = (each.by(names.FINISHED, "finished_reason") for each in (before, after))
    _of(after, names.FINISHED)
    for reason in ("error", "abort"):
        grown[reason] = new.get(reason, 0.0) - old.get(reason, 0.0)
    ours = len(asking.client.broken_off)
    asking.evidence.update(**grown, broken_off_here=ours)
    if grown["abort"] <= ours:  # those that we did not read to their end
        grown["abort"] = 0.0
    if bad := {what: count for what, count in grown.items() if count > 0}:
        told = ", ".join(f"{what} {count:g}" for what, count in bad.items())
        raise Wrong(f"requests ended badly: {told}")
    finished = sum(new.values()) - sum(old.values())
    return f"{finished:g} requests, none ended in an error, was aborted or preempted"


def _of(found: Metrics, name: str) -> float:
    total = found.total(name)
    if total is None:
        raise NotRun(f"/metrics has no {name}")
    return total


PROBES = (
    Probe(
        "counters",
        "the server's counters of errors, aborts and preemptions, before and after",
        "none has risen, but for requests that a probe itself broke off",
        "requests that end in an error or are preempted (MIA's health counters)",
        _counters,
        alone=True,
    ),
)
