"""Are all ranks up, and the same processes from the first question to the last?"""

from __future__ import annotations

from collections import Counter

from patchq.cluster.ranks import Status, blamed, fate
from patchq.errors import PatchqError
from patchq.smoke.asking import Asking
from patchq.smoke.model import NotRun, Wrong
from patchq.smoke.nodes import changed
from patchq.smoke.report import Probe

EVERY = 2.0
"""Seconds between two looks."""
MISSES = 3
"""Looks in a row that a node may leave unanswered."""


def _ranks(asking: Asking) -> str:
    nodes = asking.nodes
    looks, missed, last = 0, Counter[str](), False
    asking.evidence["ranks"] = [
        {
            "rank": state.node.rank,
            "node": state.node.name,
            "process": (state.rank or {}).get("pid"),
            "since": (state.rank or {}).get("since"),
            "restarts": state.restarts,
        }
        for state in nodes.started
    ]
    while not last:
        last = asking.over.wait(EVERY if looks else 0)
        looks += 1
        asking.evidence["looks"] = looks
        states = nodes.states()
        if dead := [
            now for now in states if isinstance(now, Status) and now.rank and not now.alive
        ]:
            asking.evidence["lines"] = {each.node.name: list(each.lines) for each in dead}
            raise Wrong(fate(blamed(dead)))
        for before, now in zip(nodes.started, states, strict=True):
            if isinstance(now, PatchqError):
                missed[before.node.name] += 1
                if last or missed[before.node.name] == MISSES:
                    raise NotRun(now.message)
                continue
            missed[before.node.name] = 0
            if why := changed(before, now):
                asking.evidence["lines"] = {now.node.name: list(now.lines)}
                raise Wrong(why)
    return f"{len(nodes.started)} ranks are up, none was started again, in {looks} looks"


PROBES = (
    Probe(
        "ranks",
        "the nodes, all the while that the other probes ask",
        "every rank is up, the same processes at the end as at the beginning, none of them frozen",
        "a server that waits for a dead rank (MIA #70, EUG #260)",
        _ranks,
        lasts="throughout",
        stops="a rank is gone, see ranks",
    ),
)
