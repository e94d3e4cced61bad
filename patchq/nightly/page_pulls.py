"""The pull requests of a queue, and what moved since the night before."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from patchq.carry.pulls.book import Entry, Role, Stand
from patchq.carry.pulls.look import entries
from patchq.carry.pulls.make import page
from patchq.carry.workspace import Queue
from patchq.gitstore import tags
from patchq.gitstore.git import GitError
from patchq.nightly import kept
from patchq.nightly.model import Night
from patchq.upstream import pulls as records
from patchq.upstream.pulls import Pull

STATE = "upstream/state.json"
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
TELLING = (
    "state", "draft", "title", "head_sha", "base", "merge_sha", "closed_by", "replaced_by",
    "reverted_by", "labels",
)  # fmt: skip
"""Facts of which a change is told, in this order; others move without meaning anything."""


@dataclass(frozen=True)
class Change:
    """A fact of a pull request that is another than it was; texts, "" for none."""

    fact: str
    was: str
    now: str


@dataclass(frozen=True)
class PullRow:
    """A pull request as the queue knows it. `state` is "unseen" where nobody ever looked.

    `why`: why it is tracked, None where it is not. `head`: how today's head stands to the pinned
    one. `decision`: refuse or hold, and why. `new`: it was not known the night before.
    """

    key: str
    page: str
    title: str
    author: str
    state: str
    draft: bool
    updated: str
    why: str | None
    patches: tuple[tuple[str, Role], ...]
    head: Stand
    decision: tuple[str, str] | None
    replaced_by: tuple[int, ...]
    changes: tuple[Change, ...] = ()
    new: bool = False

    @property
    def moved(self) -> bool:
        return self.new or bool(self.changes)


@dataclass(frozen=True)
class Looked:
    """`since`: the night with whose start the rows are compared; `why`: why they are not."""

    rows: tuple[PullRow, ...]
    since: str | None
    why: str


def seen(queue: Queue, last: Night | None, folder: Path) -> Looked:
    """Those of the queue as the last night saw them, beside what was known when it began.

    Where that night's commits are not here, first-seen dates say what is newer than it.
    """
    before: Mapping[str, Pull] | None = None
    now: Mapping[str, Pull] | None = None
    if last is not None:
        places = [queue.project.root, folder / last.name / kept.QUEUE]
        before = _at(places, last.start, queue.config.name)
        now = _at(places, last.commit, queue.config.name) if last.commit else None
    if now is None:
        now = queue.state.pulls
    rows = [_row(queue, each) for each in entries(queue, replace(queue.state, pulls=now))]
    if last is None:
        return Looked(tuple(rows), None, "no night is known here: nothing to compare with")
    compared = (_beside(row, before, now, last.began) for row in rows)
    return Looked(tuple(compared), last.name, "")


def _row(queue: Queue, entry: Entry) -> PullRow:
    pull, decided = entry.pull, entry.decision
    return PullRow(
        key=entry.key,
        page=page(queue, entry.key),
        title=pull.title if pull else "",
        author=pull.author if pull else "",
        state=pull.state if pull else "unseen",
        draft=pull.draft if pull else False,
        updated=(pull.updated_at or "") if pull else "",
        why=entry.why,
        patches=tuple((use.patch, use.role) for use in entry.uses),
        head=entry.stand,
        decision=(decided.answer, decided.why) if decided else None,
        replaced_by=pull.replaced_by if pull else (),
    )


def _beside(
    row: PullRow, before: Mapping[str, Pull] | None, now: Mapping[str, Pull], began: str
) -> PullRow:
    pull = now.get(row.key)
    if pull is None:
        return row
    if before is None:
        fresh = {fact for fact, when in pull.first_seen.items() if when >= began}
        if fresh and fresh == set(pull.first_seen):
            return replace(row, new=True)
        told = tuple(Change(each, "", _shown(pull, each)) for each in TELLING if each in fresh)
        return replace(row, changes=told)
    old = before.get(row.key)
    if old is None:
        return replace(row, new=True)
    moved = records.changes(old, pull)
    told = tuple(
        Change(each, _shown(old, each), _shown(pull, each)) for each in TELLING if each in moved
    )
    return replace(row, changes=told)


def _shown(pull: Pull, fact: str) -> str:
    value = getattr(pull, fact)
    if fact.endswith("_sha"):
        return str(value or "")[:10]
    if fact.endswith("_by") and isinstance(value, tuple):
        return ", ".join(f"#{each}" for each in value)
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value or "")


def _at(places: list[Path], commit: str, queue: str) -> dict[str, Pull] | None:
    """What a commit's record says of the pull requests; None where no place has it."""
    if not _COMMIT.fullmatch(commit):
        return None
    for place in places:
        try:
            data = tags.at(place, commit, STATE) if (place / ".git").exists() else None
            if data is not None:
                pulls = json.loads(data)["queues"][queue].get("pulls", {})
                return {key: records.from_json(key, facts) for key, facts in pulls.items()}
        except (GitError, OSError, KeyError, TypeError, ValueError, AttributeError):
            continue
    return None
