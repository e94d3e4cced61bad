"""Where a queue stands, in words: the page's sentences, its badges, and what a terminal shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from patchq.nightly.page import PatchRow
from patchq.nightly.page_pulls import Change, PullRow
from patchq.render.html import cut

if TYPE_CHECKING:
    from rich.console import RenderableType

    from patchq.nightly.model import Night, Stage
    from patchq.nightly.page import Page

Tone = str
"""good, bad, open or "": the colour of a badge."""

_ENDED: Mapping[str, Tone] = {
    "green": "good",
    "quiet": "good",
    "red": "bad",
    "done": "good",
    "failed": "bad",
    "late": "bad",
    "left out": "",
}
"""Nights and stages; the rest waits for somebody."""
_HOW = {
    "green": "was green",
    "quiet": "found nothing new",
    "red": "is red",
    "asks": "waits for an answer",
    "incomplete": "did not reach everything",
}
_VERDICT: Mapping[str, Tone] = {
    "landed": "good",
    "landed-with-changes": "good",
    "superseded": "good",
    "held": "open",
    "uncertain": "open",
    "gone": "open",
}
_PULL: Mapping[str, Tone] = {"open": "open", "merged": "good"}
_FACTS = {
    "head_sha": "head",
    "merge_sha": "merged as",
    "closed_by": "closed by",
    "replaced_by": "replaced by",
    "reverted_by": "reverted by",
}


def drawn(page: Page) -> RenderableType:
    """For a terminal: where the queue stands, in a few lines."""
    from rich.console import Group

    from patchq.render.console import text

    held = sum(each.held is not None for each in page.patches)
    told = [
        f"{page.queue} on {page.base}: {len(page.patches)} patches, {held} held",
        says(page)[1],
        moved(page),
        behind(page),
        *page.notes,
    ]
    return Group(*map(text, told))


def says(page: Page) -> tuple[Tone, str]:
    """How the last night ended and how old it is, in one sentence, and its colour."""
    last, hours = page.last, page.hours
    if last is None:
        return "open", "No night is known here."
    where = f" at {last.fault.stage}" if last.fault else ""
    how = _HOW.get(last.state, f"is {last.state}") + where
    if hours is None:
        return tone(last), f"The last night, {last.name}, {how}; when it ended cannot be read."
    age = span(hours * 3600)
    if page.late:
        than = f"more than {page.stale_hours:g} hours"
        told = f"The last night, {last.name}, {how}, and is {age} old, {than}."
        return "bad", f"{told} See why none came since."
    if last.state == "running":
        return "open", f"The night {last.name} is under way since {age}."
    return tone(last), f"The last night, {last.name}, {how}; it ended {age} ago."


def behind(page: Page) -> str:
    """How far the base is behind, in one sentence."""
    newer = page.drift.newer
    if newer is None:
        return f"How many releases came after {page.base} is not known."
    if not newer:
        return f"{page.base} is the newest release."
    many = "release is" if len(newer) == 1 else "releases are"
    return f"{len(newer)} {many} newer than {page.base}."


def moved(page: Page) -> str:
    """How many pull requests moved, in one sentence."""
    if page.moved_since is None:
        return f"What moved is not known: {page.unmoved}."
    count = sum(each.moved for each in page.pulls)
    return f"{count or 'None'} of {len(page.pulls)} moved since the night {page.moved_since} began."


def span(seconds: float) -> str:
    """A time for people, in its one or two largest units."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {rest} min" if rest and hours < 10 else f"{hours} h"
    return f"{hours // 24} days"


def word(patch: PatchRow) -> str:
    """What a patch's badge says."""
    if patch.held is not None:
        return "held"
    return patch.verdict.word if patch.verdict else "not judged"


def tone(found: Night | Stage | PatchRow | PullRow) -> Tone:
    """The colour of a thing's badge."""
    if isinstance(found, PatchRow):
        asks = found.verdict is not None and found.verdict.action == "ask"
        return "open" if asks else _VERDICT.get(word(found), "")
    if isinstance(found, PullRow):
        return _PULL.get(found.state, "")
    return _ENDED.get(found.state, "open")


def fact(change: Change) -> str:
    """A change in words: `state: open → merged`."""
    name = _FACTS.get(change.fact, change.fact)
    was, now = cut(change.was, 80), cut(change.now, 80)
    if was and now:
        return f"{name}: {was} → {now}"
    return f"{name}: {now}" if now else f"{name}: no longer {was}"
