"""REST over the forge's state: objects that hold all that GitHub's description requires."""

from __future__ import annotations

from hashlib import sha1
from typing import Any

from tests.support.forge.checks import RestChecks
from tests.support.forge.commits import iso
from tests.support.forge.issue import Comment, Issue
from tests.support.forge.pull import Pull


def simple(checks: RestChecks, pull: Pull, schema: str = "pull-request-simple") -> dict[str, Any]:
    """A pull request in a list."""
    body = checks.sample(schema)
    return {
        **body,
        **_facts(checks, pull),
        "draft": pull.draft,
        "node_id": node_id(pull),
        "head": _end(body["head"], pull.branch or "topic", pull.sha, head_repo(pull)),
        "base": _end(
            body["base"], pull.base, pull.bare.sha(f"refs/heads/{pull.base}"), pull.repo.name
        ),
        "merged_at": iso(pull.merged_at) if pull.merged_at else None,
        "merge_commit_sha": pull.merge_sha or pull.test_merge,
    }


def node_id(pull: Pull) -> str:
    """What GraphQL knows it by."""
    return f"PR_{sha1(pull.key.encode()).hexdigest()[:12]}"


def head_repo(pull: Pull) -> str:
    """The repository that its branch is in: this one, or its author's fork."""
    if pull.branch:
        return pull.repo.name
    fork = f"{pull.author}/{pull.repo.name.partition('/')[2]}"
    return fork if fork != pull.repo.name else f"{fork}-1"


def _end(body: dict[str, Any], branch: str, sha: str, repo: str) -> dict[str, Any]:
    label = f"{repo.partition('/')[0]}:{branch}"
    where = {**body["repo"], "full_name": repo}
    return {**body, "label": label, "ref": branch, "sha": sha, "repo": where}


def issue(checks: RestChecks, each: Issue | Pull) -> dict[str, Any]:
    """An issue; pull requests are issues, too."""
    is_pull = isinstance(each, Pull)
    kind = "pull" if is_pull else "issues"
    page = f"https://github.com/{each.repo.name}/{kind}/{each.number}"
    addresses = dict.fromkeys(("diff_url", "html_url", "patch_url", "url"), page)
    return {
        **checks.sample("issue"),
        "number": each.number,
        "title": each.title,
        "body": each.body or None,
        "user": checks.sample("simple-user", login=each.author),
        "state": "open" if each.state == "open" else "closed",
        "state_reason": None if isinstance(each, Pull) else each.reason,
        "labels": [{"name": name} for name in each.labels],
        "comments": len(each.comments),
        "html_url": page,
        "created_at": iso(each.created_at),
        "updated_at": iso(each.updated_at),
        "closed_at": iso(each.closed_at) if each.closed_at else None,
        **({"pull_request": addresses} if is_pull else {}),
    }


def comment(checks: RestChecks, made: Comment) -> dict[str, Any]:
    return checks.sample(
        "issue-comment",
        id=made.id,
        body=made.body,
        user=checks.sample("simple-user", login=made.author),
        created_at=iso(made.when),
        updated_at=iso(made.when),
    )


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
        "html_url": f"https://github.com/{pull.repo.name}/pull/{pull.number}",
        "title": pull.title,
        "body": pull.body or None,
        "user": checks.sample("simple-user", login=pull.author),
        "state": "open" if pull.state == "open" else "closed",
        "labels": [{**checks.label(), "name": name} for name in pull.labels],
        "created_at": iso(pull.created_at),
        "updated_at": iso(pull.updated_at),
        "closed_at": iso(pull.closed_at) if pull.closed_at else None,
    }
