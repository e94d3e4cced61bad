"""Search for pull requests by words; who calls ranks what comes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from patchq.forge.client import Client
from patchq.forge.errors import ForgeError
from patchq.forge.model import PullRequest, Seen, require_repo
from patchq.forge.shapes import LEAN, body_of, from_graphql, from_rest

TERMS = 10
"""Searches in one query."""


def search(client: Client, repo: str, terms: Iterable[str], *, limit: int = 30) -> Seen:
    """The pull requests of `repo` whose title or text has one of the terms, the newest first.

    Each term is one search of at most `limit` (up to 100) hits; its words must all occur. Without
    a token GitHub grants ten searches a minute, and a hit's head is not known. Never raises
    ForgeError: what did not come is said in `Seen.missing`.
    """
    asked = list(dict.fromkeys(filter(None, (_words(term) for term in terms))))
    ask = _by_graphql if client.token else _by_rest
    size = TERMS if client.token else 1
    pulls: dict[str, PullRequest] = {}
    bodies: dict[str, str] = {}
    missing: list[str] = []
    for at in range(0, len(asked), size):
        part = asked[at : at + size]
        client.progress.step(f"searching {client.host}", at, len(asked), "terms")
        try:
            for pull, body in ask(client, require_repo(repo), part, limit):
                pulls.setdefault(pull.key, pull)
                bodies.setdefault(pull.key, body)
        except ForgeError as error:
            missing.append(f"{error.sentence} ({len(asked) - at} terms not searched for)")
            break
    found = sorted(pulls.values(), key=lambda pull: (pull.updated_at or "", pull.number))
    ordered = {pull.key: pull for pull in reversed(found)}
    means: Any = "graphql" if client.token else "rest"
    return Seen(ordered, tuple(missing), datetime.now(UTC), means, bodies)


def _words(term: str) -> str:
    """A term as plain words: no qualifier of GitHub's search, no operator, no quotation mark."""
    words = re.findall(r"[\w.+#/-]+", term[:100])
    return " ".join(word for word in words if word not in ("AND", "OR", "NOT")).lstrip("-")


def _by_graphql(
    client: Client, repo: str, terms: Sequence[str], limit: int
) -> Iterable[tuple[PullRequest, str]]:
    parts = [
        f"s{at}: search(query: {json.dumps(_query(repo, term))}, type: ISSUE, first: {limit})"
        " { nodes { ...pull } }"
        for at, term in enumerate(terms)
    ]
    answer = client.query("query {\n" + "\n".join(parts) + "\nrateLimit { cost }\n}" + LEAN)
    for at in range(len(terms)):
        found = answer.data.get(f"s{at}")
        for node in (found or {}).get("nodes") or ():
            if isinstance(node, dict) and node.get("number"):
                yield from_graphql(repo, node), body_of(node)
    if answer.errors and not any(answer.data.get(f"s{at}") for at in range(len(terms))):
        raise ForgeError("server", f"{client.host} refuses the search", "try again later")


def _by_rest(
    client: Client, repo: str, terms: Sequence[str], limit: int
) -> Iterable[tuple[PullRequest, str]]:
    for term in terms:
        found = client.get(
            "/search/issues",
            {"q": _query(repo, term), "sort": "updated", "per_page": str(limit)},
        )
        items = found.get("items") if isinstance(found, dict) else None
        for item in items or ():
            if isinstance(item, dict) and item.get("number"):
                yield from_rest(repo, item), body_of(item)


def _query(repo: str, term: str) -> str:
    return f"repo:{repo} is:pr sort:updated-desc {term}"
