"""Nights, and what stands on a forge, as values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from patchq.forge.issues import Issue
from patchq.forge.proposals import Proposal
from patchq.nightly.model import Culprit, Fault, Night, Stage
from patchq.nightly.people import Tale

START, MADE, OTHER = "5" * 40, "a" * 40, "b" * 40
TREE, LOCK = "7" * 40, "1" * 64

HOSTILE = (
    "](http://evil.example) <script>x</script> `a` | b\u202e @everyone acme/queue#1 #2 GH-3"
    " **bold** www.evil.example ``` <!-- patchq:end --> </details>"
)


def stage(name: str, state: Any = "done", says: str = "it is done", **more: Any) -> Stage:
    return Stage(name, state, "2026-12-01T01:00:00+00:00", 61.5, says, **more)


STAGES = tuple(map(stage, ("sync", "build", "deploy", "smoke", "bench", "gate")))
SPINS = Fault(
    "smoke",
    "recall fails: it spins",
    ("node1| spins",),
    ("patchq smoke --only recall",),
    (Culprit("patch", "moe-router", "it came with 0.33.0"),),
)


def night(day: str = "2026-12-01", state: Any = "green", **fields: Any) -> Night:
    """A night that synced, built and tried a new series."""
    made = Night(
        name=day,
        queue="vllm",
        state=state,
        began=f"{day[:10]}T01:00:00+00:00",
        ended=f"{day[:10]}T05:00:00+00:00",
        start=START,
        commit=MADE,
        base=("0.32.0", "0.33.0"),
        tree=TREE,
        lock=LOCK,
        stages=STAGES,
    )
    if state == "red":
        failed = stage("smoke", "failed", "recall fails", exit=5, files=("smoke.json", "smoke.log"))
        made = replace(made, stages=(*STAGES[:3], failed), fault=SPINS)
    if state == "asks":
        fault = replace(SPINS, stage="sync", cause="moe-router conflicts in a.py (content)")
        asks = stage("sync", "asks", "a decision is needed", exit=4)
        made = replace(made, commit=None, lock=None, tree=None, stages=(asks,), fault=fault)
    if state in ("quiet", "incomplete"):
        made = replace(made, commit=None, stages=STAGES[:1])
    return replace(made, **fields)


def tale(of: Night, *earlier: Night, **fields: Any) -> Tale:
    return Tale(of, earlier, "patchq/nightly", "main", **fields)


def proposal(number: int = 5, **fields: Any) -> Proposal:
    made = Proposal(
        number, "Series for vllm", "", True, False, False, "patchq/nightly", MADE, "main", "bot", ""
    )
    return replace(made, **fields)


def issue(number: int = 7, **fields: Any) -> Issue:
    made = Issue(number, "Nightly: smoke fails", "", True, "bot", ("patchq-nightly",), "")
    return replace(made, **fields)
