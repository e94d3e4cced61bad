"""The forge's web server: REST, GraphQL and git on one port of 127.0.0.1."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

from tests.support.forge import graph, releases, rest, threads
from tests.support.forge.accidents import Accident
from tests.support.forge.checks import RestChecks
from tests.support.forge.commits import Clock
from tests.support.forge.gitcgi import serve_git
from tests.support.forge.repo import Repo

API = "/api/v3"
LARGEST_QUERY = 25
"""Pull requests in one query; GitHub answers larger ones with 502 after some ten seconds."""


@dataclass(frozen=True)
class Asked:
    """One request; `kind` is rest, graphql, git or download, `sent` and `got` count bytes of bodies."""

    kind: str
    method: str
    path: str
    token: str | None
    status: int
    sent: int
    got: int


@dataclass
class Fault:
    """An answer in place of the right one, or (`spoils`) what becomes of the right one."""

    kind: str
    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    times: int = 1
    spoils: Callable[[Response], Response] | None = None


@dataclass
class Forge:
    """What stands on the forge during one test."""

    folder: Path
    url: str
    checks: RestChecks
    clock: Clock = field(default_factory=Clock)
    repos: dict[str, Repo] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    accident: Accident | None = None
    """What happens to one request, or to the client that sent it."""
    token: str = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
    others: set[str] = field(default_factory=set)
    """Tokens that are good, but see no private repository, and may do what any visitor may."""
    rights: dict[str, set[str]] = field(default_factory=dict)
    """What tokens of few rights may write: issues, pulls, contents."""
    lock: Any = field(default_factory=threading.RLock)
    """One change at a time."""
    limits: dict[str | None, int] = field(default_factory=lambda: {None: 60})
    """Requests within the hour, by token; 5000 where it is not said."""

    @property
    def api(self) -> str:
        return f"{self.url}{API}"

    def git(self, repo: Repo) -> str:
        return f"{self.url}/{repo.name}.git"

    def toml(self, repo: Repo) -> str:
        """The lines of `upstream/NAME.toml` that lead here."""
        return f'github = "{repo.name}"\ngithub_api = "{self.api}"\ngit = "{self.git(repo)}"\n'

    def repo(self, name: str, files: Mapping[str, bytes] | None = None) -> Repo:
        made = Repo.make(name, self.folder, self.clock, files or {"README": b"read me\n"})
        self.repos[name.lower()] = made
        return made

    def fails(self, kind: str, status: int = 200, body: Any = None, **more: Any) -> None:
        """The next request of a kind gets this answer instead; `times`, `headers`, `spoils`."""
        self.faults.append(Fault(kind, status, body, **more))

    def may(self, token: str | None, right: str) -> bool:
        return token == self.token or (token is not None and right in self.rights.get(token, ()))

    def login(self, token: str | None) -> str:
        return "visitor" if token in self.others else "patchq-bot"

    def _knows(self, token: str) -> bool:
        return token == self.token or token in self.others or token in self.rights

    def count(self, kind: str | None = None) -> int:
        return sum(kind in (None, each.kind) for each in self.asked)

    # What the server asks

    def answer(self, request: Request) -> Response:
        kind = "git"
        if request.path == "/api/graphql":
            kind = "graphql"
        elif request.path.startswith("/api/"):
            kind = "rest"
        elif releases.DOWNLOAD.fullmatch(request.path):
            kind = "download"
        token = _token(request)
        # A file is taken in as it comes.
        uploads = kind == "rest" and request.path.startswith(releases.UPLOADS)
        sent = int(request.content_length or 0) if uploads else len(request.get_data())
        fault = next((each for each in self.faults if each.kind == kind and each.times > 0), None)
        if fault:
            fault.times -= 1
        if fault and not fault.spoils:
            body = fault.body if isinstance(fault.body, bytes) else json.dumps(fault.body).encode()
            response = Response(body, fault.status, content_type="application/json")
            response.headers.update(fault.headers)
        else:
            right = getattr(self, f"_{kind}")
            if self.accident and kind == self.accident.kind:
                right = self.accident.around(right)
            response = right(request, token)
            if fault and fault.spoils:
                response = fault.spoils(response)
        passes = response.direct_passthrough
        got = int(response.content_length or 0) if passes else len(response.get_data())
        path = request.full_path.rstrip("?")
        self.asked.append(Asked(kind, request.method, path, token, response.status_code, sent, got))
        return response

    def _sees(self, name: str, token: str | None) -> Repo | None:
        repo = self.repos.get(name.lower())
        sees = token is not None and (token == self.token or token in self.rights)
        return repo if repo and (not repo.private or sees) else None

    def _git(self, request: Request, token: str | None) -> Response:
        found = re.fullmatch(r"/([^/]+/[^/]+?)(?:\.git)?/(.*)", request.path)
        repo = self._sees(found[1], token) if found else None
        writes = "git-receive-pack" in request.full_path
        if (token and not self._knows(token)) or (not token and (writes or not repo)):
            words = "Invalid username or token." if token else "Authentication is required."
            head = {"WWW-Authenticate": 'Basic realm="GitHub"'}
            return Response(words, 401, head, content_type="text/plain")
        if not repo or not found:
            return Response("Repository not found.", 404, content_type="text/plain")
        if writes and not self.may(token, "contents"):
            words = "Write access to repository not granted."
            return Response(words, 403, content_type="text/plain")
        response = serve_git(request, repo.path, found[2], self.login(token) if writes else None)
        if writes and request.method == "POST":
            with self.lock:
                repo.follow()
        return response

    def _download(self, request: Request, token: str | None) -> Response:
        return releases.download(request, lambda name: self._sees(name, token))

    def _refused(self, token: str | None) -> Response | None:
        if token and not self._knows(token):
            return _json({"message": "Bad credentials", "status": "401"}, 401)
        left = self.limits.setdefault(token, 5000)
        self.limits[token] = max(left - 1, 0)
        if left <= 0:
            words = "API rate limit exceeded for 127.0.0.1. (But here's the good news: ...)"
            return _limited(_json({"message": words}, 403), 0, token)
        return None

    def _graphql(self, request: Request, token: str | None) -> Response:
        if token is None:
            return _json({"message": "This endpoint requires you to be authenticated."}, 401)
        if refused := self._refused(token):
            return refused
        asked = json.loads(request.get_data())
        if Counter(re.findall(r"\w+", asked["query"]))["pullRequest"] > LARGEST_QUERY:
            return Response(b"<html>Unicorn!</html>", 502, content_type="text/html")
        repos = [repo for repo in self.repos.values() if self._sees(repo.name, token)]
        find = lambda name: self._sees(name, token)  # noqa: E731
        variables = asked.get("variables") or {}
        may = self.may(token, "pulls")
        body = graph.answer(asked["query"], variables, find, repos, self.clock, may_write=may)
        if "data" not in body:
            self.checks.broken.append(f"graphql: {body['errors']}\n{asked['query']}")
        return _limited(_json(body), self.limits[token], token)

    def _rest(self, request: Request, token: str | None) -> Response:
        if refused := self._refused(token):
            return refused
        if wrong := self.checks.request(releases.without_file(request)):
            return _json({"message": wrong}, 422)
        with self.lock:
            response = self._route(request, token)
        etag = hashlib.sha256(response.get_data() + str(token).encode()).hexdigest()
        response.headers["ETag"] = f'W/"{etag}"'
        if request.headers.get("If-None-Match") == response.headers["ETag"]:
            response = Response(status=304, headers={"ETag": response.headers["ETag"]})
        if response.status_code in (200, 201, 204):
            self.checks.response(releases.without_file(request), response)
        return _limited(response, self.limits[token], token)

    def _route(self, request: Request, token: str | None) -> Response:
        path = request.path.removeprefix(API).removeprefix(releases.UPLOADS)
        args = request.args
        size, page = int(args.get("per_page", 30)), int(args.get("page", 1))
        part = slice(size * (page - 1), size * page)
        if path == "/rate_limit":
            left = self.limits[token]
            return _json(rest.rate_limit(left, 5000 if token else 60, int(time.time()) + 3600))
        if path == "/search/issues":
            repos = [repo for repo in self.repos.values() if self._sees(repo.name, token)]
            every = [pull for repo in repos for pull in repo.pulls.values()]
            hits = [pull for pull in every if graph.matches(pull, args["q"])]
            items = [rest.found(self.checks, pull) for pull in hits[part]]
            head = {"search_type": "lexical", "incomplete_results": False}
            return _json({**head, "total_count": len(hits), "items": items})
        if found := releases.PATH.fullmatch(path):
            repo = self._sees(found[1], token)
            if repo:
                may = self.may(token, "contents")
                return releases.answer(request, repo, found, self, may_write=may)
        found = threads.PATH.fullmatch(path)
        repo = self._sees(found[1], token) if found else None
        if not repo or not found:
            where = "https://docs.github.com/rest"
            return _json({"message": "Not Found", "documentation_url": where, "status": "404"}, 404)
        return threads.answer(request, repo, found, self, token)


def _token(request: Request) -> str | None:
    """As programs send it, or as git does: the password of whatever user."""
    kind, _, value = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() == "basic":
        return base64.b64decode(value).decode().partition(":")[2] or None
    return value if kind.lower() in ("token", "bearer") else None


def _json(body: Any, status: int = 200) -> Response:
    text = json.dumps(body)
    return Response(text, status, content_type="application/json; charset=utf-8")


def _limited(response: Response, left: int, token: str | None) -> Response:
    response.headers["X-RateLimit-Limit"] = "5000" if token else "60"
    response.headers["X-RateLimit-Remaining"] = str(left)
    response.headers["X-RateLimit-Reset"] = str(int(time.time()) + 3600)
    return response


class Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *_: Any) -> None:
        return None


class Server:
    """Runs for all tests of a process; `forge` is what it serves now."""

    def __init__(self) -> None:
        self.forge: Forge | None = None
        self._server = make_server(
            "127.0.0.1", 0, self._serve, threaded=True, request_handler=Quiet
        )
        self.url = f"http://127.0.0.1:{self._server.port}"
        self.checks = RestChecks(f"{self.url}{API}")
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def _serve(self, environ: Any, start: Any) -> Any:
        request = Request(environ)
        try:
            assert self.forge is not None
            response = self.forge.answer(request)
        except ConnectionError:
            raise  # meant so: see accidents.py
        except Exception as error:
            self.checks.broken.append(f"{request.method} {request.path}: {error!r}")
            response = Response(repr(error), 500)
        return response(environ, start)
