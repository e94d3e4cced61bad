"""Look at pull requests by the best means there are: GraphQL, lists of REST, git alone.

When we last looked lives in the cache: the record in `upstream/state.json` holds news only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from patchq.caches import keep
from patchq.config import QueueConfig
from patchq.errors import PatchqError
from patchq.forge.client import GITHUB_API, TOKENS, Client, token
from patchq.forge.model import Means, PullRequest, Seen, parse_key
from patchq.forge.pulls import by_graphql, by_rest
from patchq.forge.search import search
from patchq.progress import SILENT, Progress
from patchq.upstream.heads import Heads, git_url
from patchq.upstream.pulls import Pull

SKEW = timedelta(minutes=15)
"""How far this machine's clock may be ahead of the forge's."""

Number = tuple[str, int]


def look(
    config: QueueConfig,
    keys: Iterable[str],
    *,
    known: Mapping[str, Pull],
    cache: Path,
    root: Path | None = None,
    offline: bool = False,
    git: bool = True,
    progress: Progress = SILENT,
) -> Seen:
    """What can be seen now of the pull requests `keys` (OWNER/REPO#N).

    `known` are all recorded ones. With a token GraphQL is asked; without one REST, for what
    changed since the last look; what neither answers about is looked up by git, which knows heads
    only (its address may be a path that counts from `root`); `git` False forbids that, for it may
    fetch a whole history. Offline nothing is asked: `as_of` is
    the last look. Whatever is missing is said in `Seen.missing`; only a malformed key or setting
    raises PatchqError.
    """
    wanted = sorted({parse_key(key) for key in keys})
    looks = _Looks(cache, config.github_api or GITHUB_API)
    if offline:
        return Seen({}, (), looks.oldest({repo for repo, _ in wanted}))
    started = datetime.now(UTC)
    parts: list[Seen] = []
    waiting = wanted
    with open_client(config, progress) as client:
        if client.token and waiting:
            seen, waiting = by_graphql(client, waiting)
            parts.append(seen)
    if waiting:
        # A token that is refused, or used up, need not be the end: anyone may ask a little.
        with replace(client, token=None) as client:
            seen, waiting = _by_rest(client, waiting, known, looks)
            parts.append(seen)
    if waiting and git:
        parts.append(_by_git(config, waiting, cache, root, progress))
    asked = {repo for repo, _ in wanted}
    unseen = {repo for repo, _ in waiting}
    looks.write({repo for repo in asked - unseen if _all_of(repo, known, wanted)}, started)
    return _together(parts, started)


def open_client(config: QueueConfig, progress: Progress = SILENT) -> Client:
    """The forge's client of a queue, with the token of the environment where there is one."""
    value, variable = token() or (None, TOKENS[0])
    return Client(config.github_api or GITHUB_API, value, variable, progress)


def find(
    config: QueueConfig,
    terms: Sequence[str],
    *,
    repo: str | None = None,
    limit: int = 30,
    progress: Progress = SILENT,
) -> Seen:
    """Pull requests of `repo` (the queue's own where it is left out) that have one of the terms.

    Raises PatchqError where neither names a repository.
    """
    where = repo or config.github
    if not where:
        raise PatchqError(
            f"upstream/{config.name}.toml names no repository to search",
            'add github = "OWNER/REPO"',
        )
    with open_client(config, progress) as client:
        return search(client, where, terms, limit=limit)


def _by_rest(
    client: Client, wanted: Sequence[Number], known: Mapping[str, Pull], looks: _Looks
) -> tuple[Seen, list[Number]]:
    parts: list[Seen] = []
    for repo in sorted({repo for repo, _ in wanted}):
        numbers = [number for where, number in wanted if where == repo]
        since = looks.last(repo)
        seen, rest = by_rest(
            client, repo, numbers, known=known, since=since - SKEW if since else None
        )
        parts.append(seen)
        if rest:  # the forge gives no more: the others need not wait for it, too
            later = [each for each in wanted if each[0] > repo]
            return _together(parts, datetime.now(UTC)), [*rest, *later]
    return _together(parts, datetime.now(UTC)), []


def _by_git(
    config: QueueConfig,
    wanted: Sequence[Number],
    cache: Path,
    root: Path | None,
    progress: Progress,
) -> Seen:
    pulls: dict[str, PullRequest] = {}
    missing: list[str] = []
    for repo in sorted({repo for repo, _ in wanted}):
        numbers = [number for where, number in wanted if where == repo]
        try:
            with Heads(repo, git_url(config, repo, root), cache, progress=progress) as heads:
                brought = heads.fetch(numbers)
        except PatchqError as error:
            missing.append(f"{error.message} ({len(numbers)} heads of {repo} not looked at)")
            continue
        missing += brought.missing
        for number, sha in brought.heads.items():
            pull = PullRequest(repo, number, head_sha=sha, means="git")
            pulls[pull.key] = pull
    if pulls:
        missing.append(f"{_count(pulls)} seen by git alone, which knows the heads and no state")
    return Seen(pulls, tuple(missing), datetime.now(UTC), "git")


def _count(pulls: Mapping[str, PullRequest]) -> str:
    return f"{len(pulls)} pull requests were" if len(pulls) > 1 else f"{next(iter(pulls))} was"


def _all_of(repo: str, known: Mapping[str, Pull], wanted: Sequence[Number]) -> bool:
    """Whether a look covers all that is recorded of a repository: only then `since` may move."""
    recorded = {(pull.repo, pull.number) for pull in known.values() if pull.repo == repo}
    return recorded <= set(wanted)


def _together(parts: Sequence[Seen], when: datetime) -> Seen:
    """One answer: the better means stand first and win; the worst that was needed is named."""
    pulls: dict[str, PullRequest] = {}
    bodies: dict[str, str] = {}
    missing: list[str] = []
    means: Means = "graphql"
    for part in parts:
        pulls = {**part.pulls, **pulls}
        bodies = {**part.bodies, **bodies}
        missing += part.missing
        if part.pulls or part.missing:
            means = part.means
    return Seen(pulls, tuple(dict.fromkeys(missing)), when, means, bodies)


class _Looks:
    """When a repository was last looked at, by API and OWNER/REPO."""

    def __init__(self, cache: Path, api: str) -> None:
        self._path = cache / "forge" / "looks.json"
        self._api = urlsplit(api).netloc
        try:
            data = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            data = {}
        self._data: dict[str, str] = data if isinstance(data, dict) else {}

    def _key(self, repo: str) -> str:
        return f"{self._api} {repo}"

    def last(self, repo: str) -> datetime | None:
        try:
            found = datetime.fromisoformat(str(self._data.get(self._key(repo), "")))
        except ValueError:
            return None
        return found if found.tzinfo else None

    def oldest(self, repos: Iterable[str]) -> datetime:
        never = datetime.fromtimestamp(0, UTC)
        return min((self.last(repo) or never for repo in repos), default=never)

    def write(self, repos: Iterable[str], when: datetime) -> None:
        """A cache: where it cannot be written, the next look asks more."""
        changed = {self._key(repo): when.isoformat(timespec="seconds") for repo in repos}
        if changed:
            text = json.dumps({**self._data, **changed}, indent=1, sort_keys=True)
            keep(self._path, text.encode())
