"""Issues, comments and pull requests over REST: who may write what, and what GitHub refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from werkzeug.wrappers import Request, Response

from tests.support.forge import rest
from tests.support.forge.issue import Issue
from tests.support.forge.pull import Pull
from tests.support.forge.repo import Repo
from tests.support.forge.shelf import Refused

if TYPE_CHECKING:
    from tests.support.forge.server import Forge

PATH = re.compile(
    r"/repos/([^/]+/[^/]+)/(?:issues(?:/(?P<issue>\d+)(?P<comments>/comments)?)?"
    r"|(?P<pulls>pulls)(?:/(?P<pull>\d+))?)"
)
LONGEST = {"title": 256, "body": 65536}


def answer(
    request: Request, repo: Repo, found: re.Match[str], forge: Forge, token: str | None
) -> Response:
    try:
        return _Asked(request, repo, forge, token).answer(found)
    except Refused as no:
        error = {"resource": "Issue", "code": no.code, "field": no.field, "message": no.message}
        if no.code:
            return _json({"message": "Validation Failed", "errors": [error]}, no.status)
        return _json({"message": no.message, "status": str(no.status)}, no.status)


class _Asked:
    """A request about a repository by whoever has the token."""

    def __init__(self, request: Request, repo: Repo, forge: Forge, token: str | None) -> None:
        self.request, self.repo, self.forge, self.token = request, repo, forge, token
        self.checks = forge.checks
        self.me = forge.login(token)

    def answer(self, found: re.Match[str]) -> Response:
        writes = self.request.method != "GET"
        if writes and self.token is None:
            raise Refused(401, "Requires authentication")
        self.body = dict(json.loads(self.request.get_data())) if writes else {}
        for key, most in LONGEST.items():
            if len(self.body.get(key) or "") > most:
                raise Refused(
                    422, f"{key} is too long (maximum is {most} characters)", "custom", key
                )
        if found["pulls"]:
            return self._pull(int(found["pull"])) if found["pull"] else self._pulls()
        if not found["issue"]:
            return self._open() if writes else self._issues()
        number = int(found["issue"])
        each = self.repo.issues.get(number) or self.repo.pulls.get(number)
        if each is None:
            raise Refused(404, "Not Found")
        if found["comments"]:
            return self._comments(each)
        if writes:
            self._change(each)
        return _json(rest.issue(self.checks, each))

    def _must(self, right: str, *, also: bool = False) -> None:
        """`also`: it may be done without the right."""
        if also or self.forge.may(self.token, right):
            return
        if self.token in self.forge.rights:
            raise Refused(403, "Resource not accessible by personal access token")
        raise Refused(404, "Not Found")

    def _part(self, items: Iterable[Any]) -> list[Any]:
        args = self.request.args
        size, page = int(args.get("per_page", 30)), int(args.get("page", 1))
        return list(items)[size * (page - 1) : size * page]

    # Issues

    def _issues(self) -> Response:
        args = self.request.args
        wanted = {name.lower() for name in args.get("labels", "").split(",") if name}
        every: list[Issue | Pull] = [*self.repo.issues.values(), *self.repo.pulls.values()]
        found = [
            each
            for each in _sorted(every, args)
            if _listed(each.state, args) and wanted <= {name.lower() for name in each.labels}
        ]
        return _json([rest.issue(self.checks, each) for each in self._part(found)])

    def _open(self) -> Response:
        self._must("issues", also=self.token in self.forge.others)
        # Labels of those who may not set any are dropped without a word.
        may = self.forge.may(self.token, "issues")
        labels = [each if isinstance(each, str) else each["name"] for each in self._labels()]
        made = self.repo.issue(
            str(self.body["title"]),
            body=self.body.get("body") or "",
            author=self.me,
            labels=labels if may else (),
        )
        return _json(rest.issue(self.checks, made), 201)

    def _labels(self) -> list[Any]:
        return list(self.body.get("labels") or ())

    def _change(self, each: Issue | Pull) -> None:
        right = "pulls" if isinstance(each, Pull) else "issues"
        self._must(right, also=each.author == self.me and self.token in self.forge.others)
        self._say(each)
        state = self.body.get("state", each.state)
        if isinstance(each, Issue) and state != each.state:
            each.reopens() if state == "open" else each.closes(
                self.body.get("state_reason") or "completed"
            )

    def _say(self, each: Issue | Pull) -> None:
        each.title = self.body.get("title") or each.title
        if "body" in self.body:
            each.says(self.body["body"] or "")

    def _comments(self, each: Issue | Pull) -> Response:
        if self.request.method == "GET":
            found = [rest.comment(self.checks, one) for one in self._part(each.comments)]
            return _json(found)
        self._must("issues", also=self.token in self.forge.others)
        made = self.repo.comment(each, self.body["body"], self.me)
        return _json(rest.comment(self.checks, made), 201)

    # Pull requests

    def _pulls(self) -> Response:
        if self.request.method == "POST":
            return self._propose()
        args = self.request.args
        found = [
            pull
            for pull in _sorted(self.repo.pulls.values(), args)
            if _listed(pull.state, args) and _from(pull, args.get("head", ""))
        ]
        return _json([rest.simple(self.checks, pull) for pull in self._part(found)])

    def _propose(self) -> Response:
        self._must("pulls")
        branch, base = self.body["head"], self.body["base"]
        for field, name in (("head", branch), ("base", base)):
            if self.repo.head(name) is None:
                raise Refused(422, "", "invalid", field)
        same = [pull for pull in self.repo.pulls.values() if pull.branch == branch]
        if any(pull.state == "open" and pull.base == base for pull in same):
            owner = self.repo.name.partition("/")[0]
            raise Refused(422, f"A pull request already exists for {owner}:{branch}.", "custom")
        if not self.repo.bare.git("rev-list", "-1", f"refs/heads/{base}..refs/heads/{branch}"):
            raise Refused(422, f"No commits between {base} and {branch}", "custom")
        if self.body.get("draft") and not self.repo.drafts:
            raise Refused(422, "Draft pull requests are not supported in this repository.")
        words = {"base": base, "body": self.body.get("body") or "", "author": self.me}
        made = self.repo.propose(branch, self.body["title"], **words)
        made.draft = bool(self.body.get("draft"))
        return _json(rest.full(self.checks, made), 201)

    def _pull(self, number: int) -> Response:
        pull = self.repo.pulls.get(number)
        if pull is None:
            raise Refused(404, "Not Found")
        if self.request.method == "PATCH":
            self._must("pulls")
            self._say(pull)
            self._turn(pull, self.body.get("state", "open" if pull.state == "open" else "closed"))
        return _json(rest.full(self.checks, pull))

    def _turn(self, pull: Pull, state: str) -> None:
        """Open or closed, as far as that goes."""
        if state == "closed" and pull.state == "open":
            pull.closes()
        if state == "open" and pull.state != "open":
            gone = pull.branch and self.repo.head(pull.branch) is None
            if pull.state == "merged" or gone:
                raise Refused(422, "state cannot be changed.", "custom", "state")
            pull.reopens()


def _sorted(every: Iterable[Any], args: Mapping[str, str]) -> list[Any]:
    by = "updated_at" if args.get("sort") == "updated" else "created_at"
    key: Callable[[Any], Any] = lambda each: getattr(each, by)  # noqa: E731
    return sorted(every, key=key, reverse=args.get("direction", "desc") == "desc")


def _listed(state: str, args: Mapping[str, str]) -> bool:
    wanted = args.get("state", "open")
    return wanted == "all" or (wanted == "open") == (state == "open")


def _from(pull: Pull, head: str) -> bool:
    """Whether it comes from OWNER:BRANCH; what is not written so is overlooked."""
    owner, colon, branch = head.partition(":")
    if not colon:
        return True
    here = rest.head_repo(pull).partition("/")[0].lower()
    return (here, pull.branch or "topic") == (owner.lower(), branch)


def _json(body: Any, status: int = 200) -> Response:
    return Response(json.dumps(body), status, content_type="application/json; charset=utf-8")
