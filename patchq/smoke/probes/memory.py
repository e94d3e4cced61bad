"""Is there memory left on every node while it works, and did the kernels stay silent?"""

from __future__ import annotations

import re

from patchq.errors import PatchqError
from patchq.smoke.asking import Asking, excerpt
from patchq.smoke.model import NotRun, Wrong
from patchq.smoke.report import Probe

EVERY = 3.0
"""Seconds between two looks."""
GIB = 1 << 30
_SHOWN = 20
_BAD = re.compile(r"Out of memory|oom-kill|oom_reaper|\bXid\b|NV_ERR|NVRM: (?!loading)")


def _memory(asking: Asking) -> str:
    nodes = asking.nodes
    floor = nodes.profile.limits.memory
    least: dict[str, float] = {}
    asking.evidence.update(floor_gib=floor, least_gib=least)
    last = False
    while not last:
        last = asking.over.wait(EVERY if least else 0)
        try:
            found = nodes.available()
        except PatchqError as missed:
            raise NotRun(missed.message) from None
        for name, size in found.items():
            least[name] = min(least.get(name, float("inf")), round(size / GIB, 2))
    for name, spare in least.items():
        if spare < floor:
            raise Wrong(f"{name} had {spare:g} GiB to spare; the profile wants {floor:g}")
    told = ", ".join(f"{name} {size:g}" for name, size in least.items())
    return f"at least so many GiB to spare: {told}{kernel(asking)}"


def kernel(asking: Asking) -> str:
    """What to say of the kernels' logs. Raises Wrong."""
    try:
        logs = asking.nodes.kernel()
    except PatchqError as missed:
        raise NotRun(missed.message) from None
    unread = [name for name, lines in logs.items() if lines is None]
    bad = {
        name: found
        for name, lines in logs.items()
        if (found := [line for line in lines or () if _BAD.search(line)])
    }
    asking.evidence.update(
        kernel={name: lines[:_SHOWN] for name, lines in bad.items()}, kernel_not_read=unread
    )
    for name, lines in bad.items():
        raise Wrong(f"the kernel of {name} says {excerpt(lines[0])}")
    if unread:
        return f"; the kernel's log may not be read on {', '.join(unread)}"
    return "; the kernels said nothing bad"


PROBES = (
    Probe(
        "memory",
        "the nodes, all the while that the other probes ask, long among them",
        "memory to spare stays above the profile's limit; no kernel log has a word of memory that"
        " ran out, Xid or NVRM",
        "a long prefill that takes all memory and the machine with it (vLLM #55569); Xid 31"
        " (vLLM #55279)",
        _memory,
        lasts="throughout",
    ),
)
