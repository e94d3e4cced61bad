"""Pull requests that patchq itself opens from a branch of its own, and the steps that change one.

Facts that these functions rest on (GitHub's documentation): of the pull requests from one branch
into another at most one is open, a second is refused; a list for a branch that the forge does not
understand has everybody's; whether it is a draft can be changed by GraphQL only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from patchq.forge.answers import address, at, author, entries, require_number, text
from patchq.forge.client import Client
from patchq.forge.errors import ForgeError
from patchq.forge.threads import fit_body, fit_title, once, permitted, twice
from patchq.forge.writing import Writer
from patchq.paths import show

_ADVICE = "the permission `pull-requests: write`"
_NODE = re.compile(r"[A-Za-z0-9_=-]{1,200}")


@dataclass(frozen=True)
class Proposal:
    """`title`, `body`, `author` and the names of branches are as they were written: hostile."""

    number: int
    title: str
    body: str
    open: bool
    merged: bool
    draft: bool
    head_branch: str
    head_sha: str
    """Of a closed one: where its branch was then."""
    base: str
    author: str
    page: str


def git_host(api: str) -> str:
    """The host (with its port) that has the repositories of an API, for `gitstore.push.Secret`."""
    return urlsplit(api).netloc.removeprefix("api.")


def of_branch(client: Client, repo: str, branch: str) -> tuple[Proposal, ...]:
    """Those from a branch of this very repository, the newest first. Raises ForgeError."""
    asked = {
        "head": f"{repo.partition('/')[0]}:{branch}",
        "state": "all",
        "sort": "created",
        "direction": "desc",
    }
    items = entries(client, f"{at(repo)}/pulls", asked)
    found = (_proposal(client, item) for item in items if _own(item))
    return tuple(each for each in found if each.head_branch == branch)


def propose(
    writer: Writer, repo: str, *, branch: str, base: str, title: str, body: str, draft: bool = False
) -> Proposal:
    """The open pull request from `branch` into `base`: a new one, or the one that is there.

    Of one that is there the words stay; where drafts are not to be had it is none. Raises
    ForgeError: `refused` where the branch has nothing new; it may have been opened nevertheless,
    and then the next call finds it.
    """
    value: dict[str, Any] = {
        "title": fit_title(title),
        "body": fit_body(body),
        "head": branch,
        "base": base,
        "draft": draft,
    }

    def made() -> Proposal | None:
        there = of_branch(writer, repo, branch)
        return next((each for each in there if each.open and each.base == base), None)

    def send() -> Proposal:
        with permitted(writer, repo, f"pull requests of {repo}", _ADVICE):
            return _proposal(writer, writer.write("POST", f"{at(repo)}/pulls", value))

    try:
        return once(writer, send, made)
    except ForgeError as error:
        if error.kind == "refused" and "already exists" in error.message and (one := made()):
            return one
        if error.kind == "refused" and draft and "draft" in error.message.lower():
            return propose(writer, repo, branch=branch, base=base, title=title, body=body)
        raise _said(writer, error, branch, base) from None


def edit_proposal(
    writer: Writer,
    repo: str,
    number: int,
    *,
    title: str | None = None,
    body: str | None = None,
    open: bool | None = None,
    draft: bool | None = None,
) -> Proposal:
    """Other words for a pull request, open or closed, draft or ready; what is None stays.

    Raises ForgeError; where drafts are not to be had it stays ready.
    """
    value = {
        "title": None if title is None else fit_title(title),
        "body": None if body is None else fit_body(body),
        "state": None if open is None else ("open" if open else "closed"),
    }
    value = {key: each for key, each in value.items() if each is not None}
    path = f"{at(repo)}/pulls/{number}"
    with permitted(writer, repo, f"pull request {number} of {repo}", _ADVICE):
        item = (
            twice(writer, lambda: writer.write("PATCH", path, value)) if value else writer.get(path)
        )
        made = _proposal(writer, item)
        if draft is None or made.draft == draft or not made.open:
            return made
        return replace(made, draft=_drafted(writer, item, draft))


def _drafted(writer: Writer, item: Mapping[str, Any], draft: bool) -> bool:
    """What it is after it shall be a draft, or ready."""
    node = text(item, "node_id")
    if not _NODE.fullmatch(node):
        raise writer.odd()
    verb = "convertPullRequestToDraft" if draft else "markPullRequestReadyForReview"
    asked = f'{verb}(input: {{pullRequestId: "{node}"}}) {{ pullRequest {{ isDraft }} }}'
    answer = writer.query(f"mutation {{ {asked} }}")
    told = answer.data.get(verb)
    pull = told.get("pullRequest") if isinstance(told, dict) else None
    if isinstance(pull, dict) and isinstance(pull.get("isDraft"), bool):
        return bool(pull["isDraft"])
    why = str(answer.errors[0].get("message", "")) if answer.errors else ""
    if draft and "draft" in why.lower():
        return False
    if any(each.get("type") == "FORBIDDEN" for each in answer.errors):
        raise ForgeError("token", f"{writer.host} refuses it ({show(why)[:200]})")
    raise writer.odd()


def _said(writer: Writer, error: ForgeError, branch: str, base: str) -> ForgeError:
    """The error with what to do, where GitHub's words are known."""
    names = f"{show(branch)} and {show(base)}"
    if "No commits between" in error.message:
        return ForgeError(
            "refused",
            f"{show(branch)} has no commit that {show(base)} does not have",
            "there is nothing to propose; push the branch first where it should have one",
        )
    if "not permitted to create" in error.message:
        return ForgeError(
            "token",
            error.message,
            "allow GitHub Actions to create pull requests in the repository's settings"
            " (Actions, General), or use a token of its own",
        )
    if error.kind == "refused" and not error.hint:
        return ForgeError("refused", error.message, f"see that the branches {names} are there")
    return error


def _own(item: Mapping[str, Any]) -> bool:
    """Whether its branch is of the repository that it asks to be taken into."""

    def repo(side: str) -> str:
        end = item.get(side)
        found = end.get("repo") if isinstance(end, dict) else None
        return text(found, "full_name").lower() if isinstance(found, dict) else ""

    return repo("head") != "" and repo("head") == repo("base")


def _proposal(client: Client, item: Any) -> Proposal:
    item = require_number(client, item)
    head, base = item.get("head"), item.get("base")
    if not isinstance(head, dict) or not isinstance(base, dict):
        raise client.odd()
    return Proposal(
        number=item["number"],
        title=text(item, "title"),
        body=text(item, "body"),
        open=item.get("state") == "open",
        merged=bool(item.get("merged_at")),
        draft=item.get("draft") is True,
        head_branch=text(head, "ref"),
        head_sha=text(head, "sha"),
        base=text(base, "ref"),
        author=author(item),
        page=address(item, "html_url"),
    )
