"""The figures as Markdown, as docs/performance.md shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# (ours, peer, how many times faster it must be): issue "The queue, and patchq sync on real vLLM".
GOALS = (
    ("carry", "git", 10.0),
    ("carry", "quilt", 6.0),
    ("carry", "stgit", 25.0),
    ("sync", "git", 1.0),
)
MEMORY_MB = 300.0


def rows(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A Markdown table; all columns but the first are set to the right."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    lines += ["| " + " | ".join(row) + " |" for row in body]
    return "\n".join(lines) + "\n"


def machine(facts: Mapping[str, str]) -> str:
    """One line that says where and with what was measured."""
    return (
        f"Measured on {facts['date']}: {facts['cores']} cores ({facts['processor']}),"
        f" {facts['memory']}, Python {facts['python']}, git {facts['git']},"
        f" quilt {facts['quilt']}, StGit {facts['stgit']}; load at the end {facts['load']}.\n"
    )


def carry(found: Mapping[str, Any]) -> str:
    """Seconds, ratios and memory of every way on every case."""
    cases = found["cases"]
    heads = [f"{each['kind']}, {each['old']} to {each['new']}" for each in cases]
    ways = list(cases[0]["ways"]) if cases else []
    times, memory, notes = [], [], []
    for way in ways:
        each = [one["ways"][way] for one in cases]
        title = each[0]["title"]
        times.append([title, *(_seconds(one) for one in each)])
        memory.append([title, *(_memory(one) for one in each)])
        notes += [
            f"- {title}; {head}: {one['note']}"
            for head, one in zip(heads, each, strict=True)
            if one["note"] not in ("", f"{cases[0]['patches']} needed/clean")
        ]
    ratios = []
    for mine, peer, goal in GOALS:
        if mine in ways and peer in ways:
            cells = [_ratio(one["ways"][mine], one["ways"][peer], goal) for one in cases]
            name = f"{cases[0]['ways'][mine]['title']} against {cases[0]['ways'][peer]['title']}"
            ratios.append([name, f"{goal:g}", *cells])
    kinds = {one["kind"]: one["about"] for one in cases}
    count = cases[0]["patches"] if cases else 0
    text = [
        f"### {count} patches carried onto a newer release\n",
        "; ".join(f"*{kind}*: {about}" for kind, about in kinds.items())
        + f". Seconds of wall time (processor time in brackets), median of {found['repeat']};"
        " `!` where the final tree is not git's.\n",
        rows(["", *heads], times),
    ]
    if ratios:
        text += ["Times faster (the goal beside it; **bold** where missed):\n"]
        text += [rows(["", "goal", *heads], ratios)]
    text += [
        "Peak memory in MB: the largest process, and for patchq all its processes together.\n",
        rows(["", *heads], memory),
    ]
    return "\n".join([*text, *notes]) + "\n"


def _seconds(one: Mapping[str, Any]) -> str:
    return f"{one['wall']:.2f} ({one['cpu']:.2f})" + ("" if one["same"] else " !")


def _memory(one: Mapping[str, Any]) -> str:
    if not one["whole_mb"]:
        return f"{one['largest_mb']:.0f}"
    text = f"{one['largest_mb']:.0f}, {one['whole_mb']:.0f}"
    return f"**{text}**" if one["whole_mb"] > MEMORY_MB else text


def _ratio(mine: Mapping[str, Any], peer: Mapping[str, Any], goal: float) -> str:
    times = peer["wall"] / mine["wall"]
    text = f"{times:.1f} ({peer['cpu'] / max(mine['cpu'], 1e-3):.1f})"
    return text if times >= goal else f"**{text}**"


def curve(found: Mapping[str, Any]) -> str:
    """Seconds against the number of patches and the size of the tree."""
    points = found["points"]
    counts = sorted({each["patches"] for each in points})
    body = []
    for files in sorted({each["files"] for each in points}):
        for way in points[0]["ways"]:
            at = {one["patches"]: one["ways"][way] for one in points if one["files"] == files}
            cells = [f"{_seconds(at[count])}" if count in at else "" for count in counts]
            body.append([f"{files} files: {points[0]['ways'][way]['title']}", *cells])
    return (
        f"### Growth with the patches and with the tree ({found['step']})\n\n"
        "The same patches on the whole tree and on a part of it that holds every file they touch;"
        f" seconds (processor time), median of {found['repeat']}.\n\n"
        + rows(["", *(f"{count} patches" for count in counts)], body)
    )


def startup(found: Mapping[str, Any]) -> str:
    """Milliseconds of the commands that must answer at once."""
    body = []
    for each in found["commands"]:
        text = f"{each['wall'] * 1000:.0f}"
        over = each["goal_ms"] and each["wall"] * 1000 > each["goal_ms"]
        goal = f"{each['goal_ms']}" if each["goal_ms"] else ""
        body.append([each["title"], f"**{text}**" if over else text, goal])
    return f"### Start-up (milliseconds of wall time, median of {found['repeat']})\n\n" + rows(
        ["", "ms", "goal"], body
    )
