"""REST over the forge's state: objects that hold all that GitHub's description requires."""

from __future__ import annotations

from typing import Any

from tests.support.forge.checks import RestChecks
from tests.support.forge.commits import iso
from tests.support.forge.pull import Pull


def simple(checks: RestChecks, pull: Pull, schema: str = "pull-request-simple") -> dict[str, Any]:
    """A pull request in a list."""
    body = checks.sample(schema)
    return {
        **body,
        **_facts(checks, pull),
        "draft": pull.draft,
        "head": {**body["head"], "ref": "topic", "sha": pull.sha},
        "base": {**body["base"], "ref": pull.base, "sha": pull.bare.sha(f"refs/heads/{pull.base}")},
        "merged_at": iso(pull.merged_at) if pull.merged_at else None,
        "merge_commit_sha": pull.merge_sha or pull.test_merge,
    }


def full(checks: RestChecks, pull: Pull) -> dict[str, Any]:
    """A pull request alone."""
    return {
        **simple(checks, pull, "pull-request"),
        "merged": pull.state == "merged",
        "commits": len(pull.commits),
    }


def found(checks: RestChecks, pull: Pull) -> dict[str, Any]:
    """A pull request that a search finds: an issue, with hardly a fact of the pull request."""
    return {
        **checks.sample("issue-search-result-item"),
        **_facts(checks, pull),
        "body": pull.body,  # described as never null here
        "repository_url": f"https://api.github.com/repos/{pull.repo.name}",
        "draft": pull.draft,
        "pull_request": {
            **dict.fromkeys(("diff_url", "html_url", "patch_url", "url"), "https://github.com/"),
            "merged_at": iso(pull.merged_at) if pull.merged_at else None,
        },
    }


def rate_limit(remaining: int, limit: int, reset: int) -> dict[str, Any]:
    one = {"limit": limit, "remaining": remaining, "reset": reset, "used": limit - remaining}
    return {"resources": {"core": one, "search": one}, "rate": one}


def _facts(checks: RestChecks, pull: Pull) -> dict[str, Any]:
    return {
        "number": pull.number,
        "title": pull.title,
        "body": pull.body or None,
        "user": checks.sample("simple-user", login=pull.author),
        "state": "open" if pull.state == "open" else "closed",
        "labels": [{**checks.label(), "name": name} for name in pull.labels],
        "created_at": iso(pull.created_at),
        "updated_at": iso(pull.updated_at),
        "closed_at": iso(pull.closed_at) if pull.closed_at else None,
    }
