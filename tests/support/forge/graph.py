"""GraphQL over the forge's state: GitHub's schema validates the query and coerces the answer."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from graphql import GraphQLError, graphql_sync

from tests.support.forge.checks import graphql_schema
from tests.support.forge.commits import Clock, iso
from tests.support.forge.pull import Event, Pull
from tests.support.forge.repo import Repo
from tests.support.forge.rest import node_id

Find = Callable[[str], Repo | None]
KINDS = {
    "CLOSED_EVENT": "ClosedEvent",
    "CROSS_REFERENCED_EVENT": "CrossReferencedEvent",
    "HEAD_REF_FORCE_PUSHED_EVENT": "HeadRefForcePushedEvent",
    "BASE_REF_CHANGED_EVENT": "BaseRefChangedEvent",
    "MARKED_AS_DUPLICATE_EVENT": "MarkedAsDuplicateEvent",
    "REOPENED_EVENT": "ReopenedEvent",
}


def answer(
    query: str,
    variables: dict[str, Any],
    find: Find,
    repos: list[Repo],
    clock: Clock,
    *,
    may_write: bool = False,
) -> Any:
    """The JSON of an answer; each thing that is not there is an error beside the rest."""

    def repository(_: Any, owner: str, name: str, **__: Any) -> Any:
        repo = find(f"{owner}/{name}")
        if repo is None:
            raise missing(f"Could not resolve to a Repository with the name '{owner}/{name}'.")
        return {"nameWithOwner": repo.name, "pullRequest": lambda _, number: one(repo, number)}

    def found(_: Any, query: str, type: Any, first: int = 10, **__: Any) -> Any:
        pulls = [pull for repo in repos for pull in repo.pulls.values() if matches(pull, query)]
        pulls.sort(key=lambda pull: pull.updated_at, reverse=True)
        return {"issueCount": len(pulls), "nodes": [shape(pull) for pull in pulls[:first]]}

    def drafted(node: str, draft: bool) -> Any:
        pulls = (pull for repo in repos for pull in repo.pulls.values())
        pull = next((pull for pull in pulls if node_id(pull) == node), None)
        if pull is None:
            raise missing(f"Could not resolve to a node with the global id of '{node}'")
        if not may_write:
            words = "Resource not accessible by personal access token"
            raise GraphQLError(words, extensions={"type": "FORBIDDEN"})
        if draft and not pull.repo.drafts:
            words = "Draft pull requests are not supported in this repository."
            raise GraphQLError(words, extensions={"type": "UNPROCESSABLE"})
        pull.draft = draft
        return {"pullRequest": shape(pull)}

    reset = iso(clock.now + timedelta(hours=1))
    limit = {
        "cost": 1,
        "limit": 5000,
        "remaining": 4990,
        "used": 10,
        "nodeCount": 1,
        "resetAt": reset,
    }
    root = {
        "repository": repository,
        "search": found,
        "rateLimit": limit,
        "convertPullRequestToDraft": lambda _, input: drafted(input["pullRequestId"], True),
        "markPullRequestReadyForReview": lambda _, input: drafted(input["pullRequestId"], False),
    }
    result = graphql_sync(graphql_schema(), query, root, variable_values=variables)
    out: dict[str, Any] = {}
    if result.data is not None:
        out["data"] = result.data
    if result.errors:
        out["errors"] = [formatted(error) for error in result.errors]
    return out


def missing(message: str) -> GraphQLError:
    return GraphQLError(message, extensions={"type": "NOT_FOUND"})


def formatted(error: GraphQLError) -> dict[str, Any]:
    """As GitHub writes it: the type stands beside the message."""
    text: dict[str, Any] = dict(error.formatted)
    return {**dict(text.pop("extensions", {})), **text}


def one(repo: Repo, number: int) -> Any:
    if number not in repo.pulls:
        raise missing(f"Could not resolve to a PullRequest with the number of {number}.")
    return shape(repo.pulls[number])


def matches(pull: Pull, query: str) -> bool:
    """GitHub's search, as far as it goes here: qualifiers, and words that must all occur."""
    text = f"{pull.title}\n{pull.body}".lower()
    for word in shlex.split(query.lower()):
        key, colon, value = word.partition(":")
        match key if colon else "":
            case "repo":
                wanted = pull.repo.name.lower() == value
            case "is" | "type":
                wanted = value in ("pr", "pull-request", pull.state)
            case "sort" | "updated" | "in" | "archived":
                wanted = True
            case _:
                wanted = word in text
        if not wanted:
            return False
    return True


def shape(pull: Pull) -> dict[str, Any]:
    """The object of GitHub's type PullRequest, as far as anyone asks here."""
    merge = {"oid": pull.merge_sha} if pull.merge_sha else None
    return {
        "__typename": "PullRequest",
        "number": pull.number,
        "title": pull.title,
        "body": pull.body,
        "author": {"__typename": "User", "login": pull.author},
        "repository": lambda _: {"nameWithOwner": pull.repo.name},
        "state": pull.state.upper(),
        "isDraft": pull.draft,
        "baseRefName": pull.base,
        "headRefOid": pull.sha,
        "mergeCommit": merge,
        "createdAt": iso(pull.created_at),
        "updatedAt": iso(pull.updated_at),
        "mergedAt": iso(pull.merged_at) if pull.merged_at else None,
        "closedAt": iso(pull.closed_at) if pull.closed_at else None,
        "labels": lambda _, **page: {
            "nodes": [{"name": name} for name in pull.labels[: page["first"]]]
        },
        "commits": lambda _, **__: {"totalCount": len(pull.commits)},
        "timelineItems": lambda _, **page: timeline(pull, **page),
    }


def timeline(pull: Pull, last: int, itemTypes: list[Any], **_: Any) -> Any:  # noqa: N803
    wanted = {KINDS.get(getattr(each, "value", each), "") for each in itemTypes}
    items = [event(each) for each in pull.events if each.kind in wanted]
    return {"totalCount": len(items), "nodes": items[-last:]}


def event(event: Event) -> dict[str, Any]:
    what = event.what
    made: dict[str, Any] = {"__typename": event.kind, "createdAt": iso(event.at)}
    match event.kind:
        case "ClosedEvent":
            closer = what["closer"]
            commit = {"__typename": "Commit", "oid": closer}
            made["closer"] = shape(closer) if isinstance(closer, Pull) else closer and commit
        case "CrossReferencedEvent":
            made["source"] = shape(what["source"])
        case "HeadRefForcePushedEvent":
            made["beforeCommit"] = {"oid": what["before"]}
        case "BaseRefChangedEvent":
            made |= {"previousRefName": what["former"], "currentRefName": what["now"]}
        case "MarkedAsDuplicateEvent":
            made["canonical"] = shape(what["canonical"])
    return made
