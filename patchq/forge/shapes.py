"""GitHub's JSON as values: what is missing or of another kind is unknown, never an accident."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from patchq.forge.model import PullRequest, State
from patchq.forge.words import relations
from patchq.paths import show

_SHA = re.compile(r"[0-9a-f]{40}")
_WHEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_STATES: Mapping[str, State] = {"OPEN": "open", "CLOSED": "closed", "MERGED": "merged"}

FRAGMENT = """
fragment pull on PullRequest {
  number title body isDraft state baseRefName headRefOid
  createdAt updatedAt mergedAt closedAt
  author { login }
  mergeCommit { oid }
  labels(first: 30) { nodes { name } }
"""
FACTS = f"""{FRAGMENT}
  commits {{ totalCount }}
  timelineItems(last: 30, itemTypes: [
    CLOSED_EVENT, CROSS_REFERENCED_EVENT, HEAD_REF_FORCE_PUSHED_EVENT,
    BASE_REF_CHANGED_EVENT, MARKED_AS_DUPLICATE_EVENT
  ]) {{ nodes {{
    __typename
    ... on ClosedEvent {{ closer {{
      ... on Commit {{ oid }}
      ... on PullRequest {{ number repository {{ nameWithOwner }} }}
    }} }}
    ... on CrossReferencedEvent {{ source {{
      ... on PullRequest {{ number title body repository {{ nameWithOwner }} }}
    }} }}
    ... on HeadRefForcePushedEvent {{ createdAt }}
    ... on BaseRefChangedEvent {{ previousRefName }}
    ... on MarkedAsDuplicateEvent {{ canonical {{
      ... on PullRequest {{ number repository {{ nameWithOwner }} }}
    }} }}
  }} }}
}}
"""
"""All that is recorded of a pull request. Never `files`: GitHub computes diffs for them."""

LEAN = f"{FRAGMENT}  repository {{ nameWithOwner }}\n}}\n"
"""What a search asks of each hit."""


def from_graphql(repo: str, node: Mapping[str, Any]) -> PullRequest:
    """A `PullRequest` node of FACTS or LEAN."""
    number, title, body = _number(node, "number"), _raw(node, "title"), _raw(node, "body")
    says = relations(repo, number, title, body)
    state = _STATES.get(_raw(node, "state"), "unknown")
    events = list(_nodes(node, "timelineItems"))
    replaced, reverted, mentioned = set(says.replaced_by), set[int](), set[int]()
    for event in events:
        source = _part(event, "source")
        if other := _same_repo(repo, source):
            mentioned.add(other)
            claims = relations(repo, other, _raw(source, "title"), _raw(source, "body"))
            replaced |= {other} if number in claims.replaces else set()
            reverted |= {other} if number in claims.reverts else set()
        if other := _same_repo(repo, _part(event, "canonical")):
            replaced.add(other)
    itself = {number}
    forced = [_when(e, "createdAt") for e in events if _kind(e) == "HeadRefForcePushedEvent"]
    bases = {_text(event, "previousRefName") for event in events} - {""}
    return PullRequest(
        repo,
        number,
        title=show(title),
        author=_text(_part(node, "author"), "login"),
        state=state,
        draft=node.get("isDraft") is True,
        base=_text(node, "baseRefName"),
        former_bases=tuple(sorted(bases)),
        head_sha=_sha(node, "headRefOid") or "",
        forced_at=max((when for when in forced if when), default=None),
        merge_sha=_sha(_part(node, "mergeCommit"), "oid") if state == "merged" else None,
        created_at=_when(node, "createdAt"),
        updated_at=_when(node, "updatedAt"),
        merged_at=_when(node, "mergedAt"),
        closed_at=_when(node, "closedAt"),
        closed_by=_closer(repo, events) if state == "closed" else None,
        labels=_labels(_nodes(node, "labels")),
        commits=_number(_part(node, "commits"), "totalCount") or None,
        replaces=says.replaces,
        replaced_by=tuple(sorted(replaced - itself)),
        reverts=says.reverts,
        reverted_by=tuple(sorted(reverted - itself)),
        mentioned_by=tuple(sorted(mentioned - itself)),
        means="graphql",
    )


def from_rest(repo: str, item: Mapping[str, Any]) -> PullRequest:
    """A pull request of a list, alone, or (with hardly a fact) found by a search.

    `merge_commit_sha` counts only with `merged_at`: before and without, it is a test merge's.
    """
    number, title, body = _number(item, "number"), _raw(item, "title"), _raw(item, "body")
    says = relations(repo, number, title, body)
    merged = _when(item, "merged_at") or _when(_part(item, "pull_request"), "merged_at")
    state: State = "merged" if merged else _STATES.get(_raw(item, "state").upper(), "unknown")
    return PullRequest(
        repo,
        number,
        title=show(title),
        author=_text(_part(item, "user"), "login"),
        state=state,
        draft=item.get("draft") is True,
        base=_text(_part(item, "base"), "ref"),
        head_sha=_sha(_part(item, "head"), "sha") or "",
        merge_sha=_sha(item, "merge_commit_sha") if merged else None,
        created_at=_when(item, "created_at"),
        updated_at=_when(item, "updated_at"),
        merged_at=merged,
        closed_at=_when(item, "closed_at"),
        labels=_labels(item.get("labels") or ()),
        replaces=says.replaces,
        replaced_by=says.replaced_by,
        reverts=says.reverts,
        means="rest",
    )


def body_of(node: Mapping[str, Any]) -> str:
    """Its text as the author wrote it, less what no file in UTF-8 takes."""
    return _raw(node, "body").encode("utf-8", "replace").decode()


def _closer(repo: str, events: list[Mapping[str, Any]]) -> str | None:
    closed = [_part(event, "closer") for event in events if _kind(event) == "ClosedEvent"]
    if not closed:
        return None
    other = _same_repo(repo, closed[-1])
    return f"#{other}" if other else _sha(closed[-1], "oid")


def _same_repo(repo: str, node: Mapping[str, Any]) -> int:
    """The number of a pull request of the same repository, or 0."""
    where = _raw(_part(node, "repository"), "nameWithOwner")
    return _number(node, "number") if where.lower() == repo.lower() else 0


def _kind(node: Mapping[str, Any]) -> str:
    return _raw(node, "__typename")


def _part(node: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = node.get(key)
    return value if isinstance(value, dict) else {}


def _nodes(node: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    nodes = _part(node, key).get("nodes")
    return (each for each in nodes or () if isinstance(each, dict))


def _labels(nodes: Any) -> tuple[str, ...]:
    return tuple(sorted({_text(each, "name") for each in nodes if isinstance(each, dict)} - {""}))


def _raw(node: Mapping[str, Any], key: str) -> str:
    value = node.get(key)
    return value if isinstance(value, str) else ""


def _text(node: Mapping[str, Any], key: str) -> str:
    return show(_raw(node, key))


def _number(node: Mapping[str, Any], key: str) -> int:
    value = node.get(key)
    return value if type(value) is int and value > 0 else 0


def _sha(node: Mapping[str, Any], key: str) -> str | None:
    return found if _SHA.fullmatch(found := _raw(node, key)) else None


def _when(node: Mapping[str, Any], key: str) -> str | None:
    return found if _WHEN.fullmatch(found := _raw(node, key)) else None
