"""What the ranks' logs say, and which backends they name."""

from __future__ import annotations

import re

from patchq.cluster.causes import CAUSES
from patchq.errors import PatchqError
from patchq.paths import show
from patchq.smoke.asking import Asking
from patchq.smoke.model import LeftOut, NotRun, Wrong
from patchq.smoke.report import Probe

SHOWN = 20
"""Lines of a node that go into the evidence."""
SHOWN_OF = 240
"""Characters of a line, the last: the first say when and where."""
SIGNS = (
    (r"\bFALLBACK\b|[Ff]all(?:ing|s)? ?back\b|\bfallback to\b", "a fallback"),
    (r"Traceback \(most recent call last\)", "an error in the code"),
    (r"EngineDeadError|Worker(?:Proc)?\b.*\b(?:died|failed)|Engine core .*died", "a dead rank"),
    (r"(?i)\bwarn\w*\b.*\b(?:kv[ _-]?)?cache[ _-]layout", "a warning about the cache's layout"),
    *((each.sign.pattern, each.says) for each in CAUSES),
)
"""What in a log is a fault, as a regular expression, and what it means."""
_ANY = "|".join(f"(?:{sign.removeprefix('(?i)')})" for sign, _ in SIGNS)
_TABLE = r"backends_table\.py:\d+\] "
_ASKED_FOR = ("attention-backend", "linear-backend", "moe-backend", "kv-cache-dtype")
"""Flags that request a backend."""


def meaning(line: str) -> str | None:
    """What a line of a log means, if it is a fault."""
    return next((says for sign, says in SIGNS if re.search(sign, line)), None)


def _logs(asking: Asking) -> str:
    known = [re.compile(each) for each in asking.setting.bounds.log_known]
    found = {
        name: [
            (says, line)
            for line in lines
            if not any(each.search(line) for each in known) and (says := meaning(line))
        ]
        for name, lines in _matching(asking, f"(?i:{_ANY})").items()
    }
    asking.evidence["lines"] = {
        name: [line for _, line in lines[:SHOWN]] for name, lines in found.items() if lines
    }
    for name, lines in found.items():
        if lines:
            says, line = lines[0]
            more = f", and {len(lines) - 1} more lines" if len(lines) > 1 else ""
            raise Wrong(f"the log of {name} has {says}: {show(line[-SHOWN_OF:])}{more}")
    return f"nothing bad in the logs of {len(found)} ranks"


def _backends(asking: Asking) -> str:
    rows = [
        cells
        for lines in _matching(asking, _TABLE).values()
        for line in lines
        if len(cells := re.split(r"\s{2,}", re.split(_TABLE, line)[-1].strip())) >= 3
    ]
    asked_for = [flag for flag in _ASKED_FOR if flag in asking.nodes.profile.flags]
    if not rows:
        if asked_for:
            raise NotRun(
                f"the profile asks for {', '.join(asked_for)}, and no log has the table of"
                " backends; the series' backends-table writes it"
            )
        raise LeftOut("no log has the table of backends, and the profile asks for none")
    asking.evidence["backends"] = [" | ".join(cells) for cells in rows]
    for cells in rows:
        if any("FALLBACK" in cell for cell in cells):
            raise Wrong(f"{cells[0]}: {cells[1]} was requested, in use: {cells[2]}")
    in_use = {cells[0]: cells[2] for cells in rows if cells[1:2] != ["requested"]}
    told = ", ".join(f"{what} {used}" for what, used in in_use.items() if used != "-")
    return f"in use: {told}"


def _matching(asking: Asking, pattern: str) -> dict[str, list[str]]:
    try:
        return asking.nodes.matching(pattern)
    except PatchqError as missed:
        raise NotRun(missed.message) from None


PROBES = (
    Probe(
        "backends",
        "the table of backends in the log",
        "what the profile requests is what is in use",
        "a fallback that nobody asked for (CB's deployment check)",
        _backends,
        alone=True,
    ),
    Probe(
        "logs",
        "the logs of all ranks since their start, at the end",
        "no fallback, missing symbol, rank error, warning about the cache's layout, or traceback",
        "a deployment that answers and has failed (CB's deployment check)",
        _logs,
        alone=True,
    ),
)
