"""Pull requests by number: all facts by GraphQL, or what lists of REST tell without a token."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from patchq.forge.client import TOKENS, Client
from patchq.forge.errors import ForgeError
from patchq.forge.model import PullRequest, Seen, require_repo
from patchq.forge.shapes import FACTS, body_of, from_graphql, from_rest
from patchq.paths import show

BATCH = 25
"""Pull requests in one query: with more of them GitHub breaks off after some ten seconds."""
SMALLEST = 5
STORMS = 3
"""Failures of the forge after which the rest is not asked any more."""
PAGES = 20
RESERVE = 5
"""Of the hour's 60 requests without a token, what is left to others on the same address."""

Number = tuple[str, int]


@dataclass
class _Looking:
    """What came so far, and what is missing."""

    pulls: dict[str, PullRequest] = field(default_factory=dict)
    bodies: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    unseen: list[Number] = field(default_factory=list)
    """Numbers that another means may still see."""

    def add(self, pull: PullRequest, body: str) -> None:
        self.pulls[pull.key] = pull
        self.bodies[pull.key] = body


def by_graphql(client: Client, wanted: Iterable[Number]) -> tuple[Seen, list[Number]]:
    """What GitHub says of pull requests, BATCH in a query; and those that it did not answer about.

    Never raises ForgeError: what did not come is said in `Seen.missing`.
    """
    look = _Looking()
    numbers = sorted(set(wanted))
    waiting = [numbers[at : at + BATCH] for at in range(0, len(numbers), BATCH)]
    storms = 0
    while waiting:
        batch = waiting.pop(0)
        done = len(look.pulls)
        client.progress.step(f"asking {client.host}", done, len(numbers), "pull requests")
        try:
            answer = client.query(_query(batch))
        except ForgeError as error:
            storms += error.kind in ("server", "answer")
            if error.kind in ("server", "answer") and len(batch) > SMALLEST and storms < STORMS:
                half = len(batch) // 2
                waiting[:0] = [batch[:half], batch[half:]]
                continue
            rest = [*batch, *(each for later in waiting for each in later)]
            look.missing.append(error.sentence)
            look.unseen += rest
            break
        _read(look, batch, answer.data, answer.errors, client.host)
    return _seen(look, "graphql"), look.unseen


def _query(batch: Sequence[Number]) -> str:
    """The names and numbers were checked: nothing of them can end a string."""
    parts = []
    for at, (repo, numbers) in enumerate(_by_repo(batch)):
        owner, name = map(json.dumps, require_repo(repo).split("/"))
        pulls = " ".join(f"p{n}: pullRequest(number: {n}) {{ ...pull }}" for n in numbers)
        parts.append(f"r{at}: repository(owner: {owner}, name: {name}) {{ {pulls} }}")
    return "query {\n" + "\n".join(parts) + "\nrateLimit { cost remaining resetAt }\n}" + FACTS


def _by_repo(batch: Sequence[Number]) -> list[tuple[str, list[int]]]:
    repos: dict[str, list[int]] = {}
    for repo, number in batch:
        repos.setdefault(repo, []).append(number)
    return list(repos.items())


def _read(
    look: _Looking,
    batch: Sequence[Number],
    data: Mapping[str, Any],
    errors: Iterable[Mapping[str, Any]],
    host: str,
) -> None:
    """Takes what came; the errors say why the rest did not."""
    why = {".".join(map(str, error.get("path") or ())): error for error in errors}
    for at, (repo, numbers) in enumerate(_by_repo(batch)):
        there = data.get(f"r{at}")
        if not isinstance(there, dict):
            _absent(look, repo, [(repo, n) for n in numbers], why.get(f"r{at}"), host)
            continue
        for number in numbers:
            node = there.get(f"p{number}")
            if isinstance(node, dict) and node.get("number") == number:
                look.add(from_graphql(repo, node), body_of(node))
            else:
                error = why.get(f"r{at}.p{number}")
                _absent(look, f"{repo}#{number}", [(repo, number)], error, host)


def _absent(
    look: _Looking, what: str, numbers: list[Number], error: Mapping[str, Any] | None, host: str
) -> None:
    """Says that something is not there; or that it was not answered, which others may do."""
    if error is None or error.get("type") == "NOT_FOUND":
        look.missing.append(f"{what} is not on {host}, or the token may not see it")
        return
    why = show(str(error.get("message")))[:200]
    look.missing.append(f"{host} does not answer about {what} ({why})")
    look.unseen += numbers


def by_rest(
    client: Client,
    repo: str,
    numbers: Iterable[int],
    *,
    known: Mapping[str, PullRequest],
    since: datetime | None,
) -> tuple[Seen, list[Number]]:
    """What the lists of `repo` say of pull requests, within the requests that are left.

    The lists go back to `since`, the last look: what is `known` and not in them did not change.
    What the lists do not reach is asked one by one. Never raises ForgeError.
    """
    look = _Looking()
    left = set(numbers)
    try:
        reached = False
        for page in _pages(client, repo, min(PAGES, len(left))):
            for item in page:
                pull = from_rest(repo, item)
                if pull.number in left:
                    left.discard(pull.number)
                    look.add(pull, body_of(item))
            oldest = page[-1].get("updated_at") if page else None
            reached = since is not None and (oldest is None or str(oldest) < _iso(since))
            if reached or not left:
                break
        for number in sorted(left):
            old = known.get(f"{repo}#{number}")
            if reached and old and old.state != "unknown":
                left.discard(number)
                look.pulls[old.key] = old
        _one_by_one(client, look, repo, left)
    except ForgeError as error:
        look.unseen = [(repo, number) for number in sorted(left)]
        absent = error.kind == "absent"
        says = f"{repo} is not on {client.host}, or needs a token" if absent else error.sentence
        look.missing.append(says)
        if absent:
            look.unseen = []
    return _seen(look, "rest"), look.unseen


def _pages(client: Client, repo: str, most: int) -> Iterator[list[dict[str, Any]]]:
    """The newest changes first, 100 on a page; not more pages than asking one by one would take."""
    path = f"/repos/{require_repo(repo)}/pulls"
    order = {"state": "all", "sort": "updated", "direction": "desc", "per_page": "100"}
    for page in range(1, most + 1):
        items = client.get(path, {**order, "page": str(page)})
        if not isinstance(items, list):
            raise client.odd()
        yield [item for item in items if isinstance(item, dict)]
        if len(items) < 100:
            return


def _one_by_one(client: Client, look: _Looking, repo: str, left: set[int]) -> None:
    """Takes out of `left` what was answered. Raises ForgeError where nothing more can come."""
    for done, number in enumerate(sorted(left)):
        if client.remaining is not None and client.remaining <= RESERVE:
            raise ForgeError(
                "limit", f"{client.host} grants few requests without a token", f"set {TOKENS[0]}"
            )
        client.progress.step(f"asking {client.host}", done, len(left), "pull requests")
        try:
            item = client.get(f"/repos/{repo}/pulls/{number}")
        except ForgeError as error:
            if error.kind != "absent":
                raise
            look.missing.append(f"{repo}#{number} is not on {client.host}, or needs a token")
        else:
            if isinstance(item, dict):
                look.add(from_rest(repo, item), body_of(item))
        left.discard(number)


def _seen(look: _Looking, means: Any) -> Seen:
    return Seen(look.pulls, tuple(look.missing), datetime.now(UTC), means, look.bodies)


def _iso(when: datetime) -> str:
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
