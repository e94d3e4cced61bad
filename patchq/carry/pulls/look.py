"""How the pull requests of a queue stand now: asked, and recorded as values. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from patchq.carry import decisions
from patchq.carry.pulls.book import Entry, book, watched
from patchq.carry.shelf import now
from patchq.carry.workspace import Queue
from patchq.config import cache_dir
from patchq.forge.model import PullRequest, parse_key
from patchq.progress import SILENT, Progress
from patchq.upstream import pulls as records
from patchq.upstream.heads import Heads, git_url
from patchq.upstream.history import local_git_dir
from patchq.upstream.look import look as ask
from patchq.upstream.state import QueueState


@dataclass(frozen=True)
class Looked:
    """`state` with what was seen, and `news`: the facts that are new, by OWNER/REPO#N.

    `missing` are sentences about what was not reached; what was recorded of it stays.
    """

    state: QueueState
    as_of: datetime = field(default_factory=lambda: datetime.fromtimestamp(0, UTC))
    means: str = ""
    missing: tuple[str, ...] = ()
    news: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def entries(queue: Queue, state: QueueState | None = None) -> tuple[Entry, ...]:
    """The queue's pull requests, as `state` (the recorded one) knows them."""
    return book(
        queue.config.track,
        queue.series.all,
        (state or queue.state).pulls,
        decisions.pulls(queue.project, queue.config.name),
    )


def look(
    queue: Queue,
    *,
    keys: Iterable[str] | None = None,
    offline: bool = False,
    git: bool = True,
    progress: Progress = SILENT,
) -> Looked:
    """Ask how `keys` stand (all that the queue watches, where none are named).

    One that is seen for the first time is pinned to its head. A record of one that the queue no
    longer watches goes. `git` False forbids to fetch heads by git where the forge does not answer.
    """
    watching = watched(entries(queue))
    wanted = tuple(watching if keys is None else keys)
    if not wanted:
        return Looked(replace(queue.state, pulls={}))
    known = queue.state.pulls
    seen = ask(
        queue.config,
        wanted,
        known=known,
        cache=cache_dir(),
        root=queue.project.root,
        offline=offline,
        git=git,
        progress=progress,
    )
    if offline:
        seen = replace(seen, pulls=_at_hand(queue, wanted))
    pulls = {key: pull for key, pull in known.items() if key in {*watching, *wanted}}
    news: dict[str, tuple[str, ...]] = {}
    for key, found in seen.pulls.items():
        old = pulls.get(key)
        new = records.record(old, found, _stamp())
        if old is None:
            new = replace(new, pinned=new.head_sha or None)
        elif new is not old:
            news[key] = records.changes(old, new)
        pulls[key] = new
    return Looked(replace(queue.state, pulls=pulls), seen.as_of, seen.means, seen.missing, news)


def _at_hand(queue: Queue, wanted: Iterable[str]) -> dict[str, PullRequest]:
    """Heads from repositories of this machine: a path is read in place, offline as well.

    A clone may be older than what a forge said: that stays.
    """
    found: dict[str, PullRequest] = {}
    names = [parse_key(key) for key in wanted]
    for repo in sorted({repo for repo, _ in names}):
        where = git_url(queue.config, repo, queue.project.root)
        if local_git_dir(where) is None:
            continue
        with Heads(repo, where, cache_dir(), offline=True) as heads:
            brought = heads.fetch([number for each, number in names if each == repo])
        for number, sha in brought.heads.items():
            pull = PullRequest(repo, number, head_sha=sha, means="git")
            known = queue.state.pulls.get(pull.key)
            if known is None or known.means == "git":
                found[pull.key] = pull
    return found


def pinned(state: QueueState, key: str, head: str) -> QueueState:
    """`state` with that head pinned; where only git knows the pull request, git's word."""
    pull = state.pulls.get(key)
    if pull is None:
        repo, _, number = key.rpartition("#")
        seen = PullRequest(repo, int(number), head_sha=head, means="git")
        pull = records.record(None, seen, _stamp())
    return replace(state, pulls={**state.pulls, key: replace(pull, pinned=head)})


def _stamp() -> str:
    return now().strftime("%Y-%m-%dT%H:%M:%SZ")
