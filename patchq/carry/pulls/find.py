"""`patchq pr find`: pull requests upstream that matter to this queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from patchq.carry.pulls import look
from patchq.carry.pulls.model import Asked, FindReport
from patchq.carry.pulls.rank import rank
from patchq.carry.pulls.spans import TRUNKS, Source, source, targets
from patchq.carry.workspace import Queue, upstream_of
from patchq.errors import PatchqError
from patchq.forge.model import PullRequest
from patchq.paths import show
from patchq.progress import SILENT, Progress
from patchq.upstream.look import find as search

NAMES = 12
"""Names of files that are searched for: each is a question to the forge."""


def find(
    queue: Queue,
    terms: Sequence[str] = (),
    *,
    repo: str | None = None,
    limit: int = 20,
    offline: bool = False,
    progress: Progress = SILENT,
) -> FindReport:
    """Search by `terms` (without them by the queue's topics and its patches' files) and rank.

    Raises PatchqError offline, and where it is not known which repository to ask.
    """
    where = repo or queue.config.github
    if where is None:
        raise PatchqError(
            f"the queue {queue.config.name!r} does not say which repository it patches",
            f'write github = "OWNER/REPO" in upstream/{queue.config.name}.toml',
        )
    if offline:
        raise PatchqError("offline there is nobody to ask", "`patchq pr list --offline`")
    ours = paths(queue)
    words = [*terms] or [*queue.config.topics, *_names(ours)]
    if not words:
        raise PatchqError("find what?", "name terms, or topics in the queue's file")
    seen = search(queue.config, words, repo=where, limit=max(limit, 50), progress=progress)
    entries = look.entries(queue)
    watched = {entry.key for entry in entries if entry.why is not None or entry.uses}
    refused = {e.key for e in entries if e.decision and e.decision.answer == "refuse"} - watched
    fresh = [pull for key, pull in seen.pulls.items() if key not in watched | refused]
    fresh, notes = _with_files(queue, where, fresh, progress)
    ranked = rank(fresh, terms, queue.config.topics, ours, sorted(watched), seen.bodies)
    return FindReport(
        queue.config.name,
        tuple(words),
        ranked[:limit],
        {
            "tracked": len(watched & set(seen.pulls)),
            "refused": len(refused & set(seen.pulls)),
            "below the limit": len(ranked[limit:]),
        },
        Asked(seen.as_of, seen.means, seen.missing),
        notes,
    )


def paths(queue: Queue) -> tuple[str, ...]:
    """The files that the queue's patches change."""
    return tuple(
        sorted({show(file.path) for patch in queue.series.all for file in patch.files or ()})
    )


def _names(ours: Sequence[str]) -> list[str]:
    """What the files are called, without folder and ending: titles and texts name them so."""
    stems = [path.rpartition("/")[2].partition(".")[0] for path in ours]
    return [stem for stem in dict.fromkeys(stems) if len(stem) > 3 and stem != "__init__"][:NAMES]


def _with_files(
    queue: Queue, repo: str, found: Sequence[PullRequest], progress: Progress
) -> tuple[list[PullRequest], tuple[str, ...]]:
    """With the paths that each one changes, where upstream's history is here.

    Names need no contents; but a history that is not here is not fetched for a search.
    """
    with (
        upstream_of(queue, progress=progress) as upstream,
        source(queue, upstream.store, repo, offline=False, progress=progress) as pulls,
    ):
        if not any(pulls.heads.branch(name) for name in TRUNKS):
            told = "which files they change was not looked at: upstream's history is not here"
            return list(found), (told,)
        branches = {branch for pull in found for branch in targets(pull)}
        heads = pulls.heads.fetch([pull.number for pull in found], branches=branches).heads
        known = [
            replace(pull, files=_changed(pulls, heads[pull.number], pull))
            if pull.number in heads
            else pull
            for pull in found
        ]
    return known, ()


def _changed(pulls: Source, head: str, pull: PullRequest) -> tuple[str, ...]:
    for branch in targets(pull):
        base = pulls.heads.merge_base(head, branch)
        if base is not None and base != head:
            return tuple(map(show, pulls.heads.files(base, head)))
    return ()
