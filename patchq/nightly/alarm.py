"""The alarm: no night has come to an end for too long. Raised by another machine than the nights'.

A night that reached nothing (a node is down, say) has come to no end: every morning one more of
them is no reason for silence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from patchq.config import DEFAULT_QUEUE
from patchq.errors import PatchqError
from patchq.forge import issues
from patchq.forge.issues import Issue
from patchq.forge.retries import PATIENCE, Patience
from patchq.forge.writing import Writer
from patchq.nightly import ours, people, shared
from patchq.nightly.desk import Desk, desk
from patchq.nightly.model import Night
from patchq.nightly.people import Overdue, Words
from patchq.nightly.settings import Settings
from patchq.progress import SILENT, Progress

ENDED = ("green", "quiet", "asks", "red")
"""How a night ends that came to a verdict."""
_LAST = "<!-- patchq:last {} -->"


@dataclass(frozen=True)
class Alarmed:
    """`stale`: no night came to an end within the limit. `hours` since; None without any night.

    `last`: the name of the last night that did. `issue`: the alarm that stands now.
    """

    stale: bool
    last: str | None
    hours: float | None
    issue: int | None
    says: tuple[str, ...]


def overdue(queue: str, nights: Sequence[Night], now: datetime, limit: float) -> Overdue | None:
    """What is overdue among the nights (the oldest first); None where there is none at all."""
    if not nights:
        return None
    ends = [place for place, each in enumerate(nights) if each.state in ENDED]
    last = nights[ends[-1]] if ends else None
    after = tuple(nights[ends[-1] + 1 :] if ends else nights)
    began = last.ended or last.began if last else after[0].began
    hours = (now - datetime.fromisoformat(began)).total_seconds() / 3600
    return Overdue(queue, hours, limit, last, after)


def alarm(
    root: Path,
    settings: Settings,
    now: datetime,
    words: Words,
    progress: Progress = SILENT,
    *,
    queue: str = DEFAULT_QUEUE,
    patience: Patience = PATIENCE,
) -> Alarmed:
    """Open the one alarm where the last night is too old, close it where it is young again.

    `root`: any clone of the project; `now` has a time zone. Raises PatchqError without a token or
    a repository, or where the token may not set labels, and ForgeError where the forge is not
    reached; Incomplete where its repository is not.
    """
    at = desk(root, settings)
    progress.step("reading the nights")
    there = shared.ask(root, queue, secret=at.git)
    found = overdue(queue, there.nights, now, settings.stale_hours)
    if found is None:
        says = f"no night of {queue} is known yet: nothing can be overdue"
        return Alarmed(False, None, None, None, (says, *there.says))
    name = found.last.name if found.last else None
    stale = found.hours > found.limit
    with at.writer(progress, patience) as client:
        progress.step(f"looking at the issues of {at.repo}")
        standing = _standing(client, at, settings.label, queue)
        if stale:
            number, done = _raised(client, at, settings.label, found, standing, words)
        else:
            assert found.last
            number, done = None, _ended(client, at, found.last, standing, words)
    age = f"the last night that came to an end is {found.hours:.0f} hours old"
    return Alarmed(stale, name, found.hours, number, (age, *done, *there.says))


def _standing(client: Writer, at: Desk, label: str, queue: str) -> Issue | None:
    """The alarm that is open, else the one that was closed last."""
    marker = people.alarm_marker(queue)
    under = issues.labelled(client, at.repo, label, open_only=False)
    ours = [each for each in under if people.has_marker(each, marker)]
    return next((each for each in ours if each.open), ours[0] if ours else None)


def _raised(
    client: Writer, at: Desk, label: str, found: Overdue, standing: Issue | None, words: Words
) -> tuple[int | None, list[str]]:
    mark = _LAST.format(found.last.name if found.last else "none")
    if standing is not None and not standing.open:
        if mark in standing.body:
            return None, [f"alarm #{standing.number} was closed by hand: it is not raised again"]
        standing = None
    body = standing.body if standing else ""
    text = words.overdue(found, ours.room(body))
    body = ours.merged(body, f"{mark}\n{ours.unmarked(text.body)}")
    if (marker := people.alarm_marker(found.queue)) not in body:
        body = f"{marker}\n{body}"
    if standing is not None:
        step = people.edit("edit-issue", standing, people.ISSUE_TITLE, text.title, body)
        if step is not None:
            issues.edit_issue(client, at.repo, standing.number, title=step.title, body=step.body)
        return standing.number, [f"alarm #{standing.number} stands"]
    made = issues.open_issue(client, at.repo, text.title, body, [label])
    if label.lower() not in map(str.lower, made.labels):
        # Without it the next look would not find this one, and open another, hour by hour.
        issues.edit_issue(client, at.repo, made.number, open=False)
        raise PatchqError(
            f"the token in {at.variable} may not set the label {label} at {at.repo}:"
            f" issue #{made.number} was closed again",
            "give it to somebody who may (triage, or issues: write in the repository's own runs)",
        )
    return made.number, [f"alarm #{made.number} was raised"]


def _ended(
    client: Writer, at: Desk, last: Night, standing: Issue | None, words: Words
) -> list[str]:
    if standing is None or not standing.open:
        return []
    issues.edit_issue(client, at.repo, standing.number, open=False)
    issues.comment(client, at.repo, standing.number, words.young(last))
    return [f"alarm #{standing.number} was closed"]
