"""What the drawings of pull requests have in common. Everything upstream wrote is a stranger's."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.console import RenderableType

from patchq.paths import show
from patchq.render.console import text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchq.carry.pulls.book import Entry
    from patchq.carry.pulls.model import Asked, Moved, Stop

AT_MOST = 12
"""Lines that are shown of each side of a conflict."""
STATES = {"open": "green", "merged": "cyan", "closed": "red", "unknown": "yellow"}


def one_line(each: Entry) -> RenderableType:
    pull = each.pull
    line = text(each.key, "cyan")
    if pull is None:
        return line.append(text("  never seen"))
    line.append(text(f"  {pull.state}", STATES.get(pull.state, "")))
    return line.append(text(f"  {pull.title}"))


def stops(found: Sequence[Stop]) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for each in found:
        parts.append(text(f"{each.patch} cannot be put on the series:", "bold red"))
        shown = {clash.path: clash for clash in each.clashes}
        for conflict in each.conflicts:
            clash = shown.get(conflict.path)
            if clash is not None and clash.sides:
                for side in clash.sides:
                    parts.append(text(f"  {show(clash.new_path)}:{side.line}: {conflict.kind}"))
                    parts += [*_side("<", side.ours, "green"), *_side(">", side.theirs, "cyan")]
            else:
                parts.append(text(f"  {show(conflict.path)}: {conflict.kind}"))
        if not each.conflicts:
            parts += [text(f"  {signal.detail}") for signal in each.evidence]
    return parts


def _side(mark: str, version: bytes, style: str) -> list[RenderableType]:
    """The lines of one side: `<` stand in the series, `>` come with the pull request."""
    lines = version.splitlines()
    shown: list[RenderableType] = [
        text(f"    {mark} ", style).append(text(line)) for line in lines[:AT_MOST]
    ]
    if len(lines) > AT_MOST:
        shown.append(text(f"    {mark} ... {len(lines) - AT_MOST} lines more", "dim"))
    return shown


def news(each: Moved) -> list[str]:
    """What is news, in words; dates and what only moved with something else are not told."""
    pull = each.entry.pull
    if pull is None:
        return []
    words = {
        "state": f"{pull.state} now",
        "draft": "a draft now" if pull.draft else "no draft any more",
        "base": f"asks for {pull.base} now",
        "merge_sha": f"landed as {(pull.merge_sha or '')[:12]}",
        "closed_by": f"closed by {(pull.closed_by or 'nobody')[:12]}",
        "title": "another title",
        "labels": f"labels: {', '.join(pull.labels) or 'none'}",
        "replaced_by": f"replaced by {numbers(pull.replaced_by)}",
        "reverted_by": f"taken back by {numbers(pull.reverted_by)}",
    }
    if not (each.done or each.range_diff):
        words["head_sha"] = f"its head is {pull.head_sha[:12]}"
    return [words[name] for name in words if name in each.news]


def numbers(found: Sequence[int]) -> str:
    return ", ".join(f"#{number}" for number in found)


def asked(how: Asked) -> list[RenderableType]:
    """How old it all is, and what was not reached."""
    parts = [text(missing, "yellow") for missing in how.missing]
    if how.offline:
        parts.append(text(f"As recorded; last asked {age(how.as_of)}.", "dim"))
    elif how.means == "git" and not how.missing:
        parts.append(text("Seen by git alone: heads, no states.", "dim"))
    elif how.means and not how.missing:
        parts.append(text(f"As of {how.as_of:%Y-%m-%d %H:%M} UTC, by {how.means}.", "dim"))
    return list(parts)


def age(when: datetime) -> str:
    """How long ago that was, in one unit."""
    if when.timestamp() <= 0:
        return "never"
    seconds = int((datetime.now(UTC) - when).total_seconds())
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= size:
            count = seconds // size
            return f"{count} {unit}{'s' if count != 1 else ''} ago"
    return "just now"
