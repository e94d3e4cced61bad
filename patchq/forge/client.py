"""One connection to GitHub: PyGithub with patience, and without a token in any text.

The retries are PyGithub's, less its traps (measured with 2.10): 5xx answers are asked again with
pauses, 429 counts as a limit, nothing here writes (a POST is a
query and may be repeated; writing.py is for the others), and every wait is shown and bounded,
`Retry-After` too.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from patchq.errors import PatchqError
from patchq.forge.errors import ForgeError
from patchq.forge.retries import PATIENCE, Patience, retries
from patchq.paths import show
from patchq.progress import SILENT, Progress

if TYPE_CHECKING:
    from github import Github, GithubException, GithubRetry
    from github.Requester import Requester

GITHUB_API = "https://api.github.com"
TOKENS = ("GITHUB_TOKEN", "GH_TOKEN")


@dataclass(frozen=True)
class Answer:
    """A GraphQL answer: what came, and the errors beside it."""

    data: Mapping[str, Any]
    errors: tuple[Mapping[str, Any], ...] = ()


def token() -> tuple[str, str] | None:
    """The token and the variable that it stands in; None without one."""
    for name in TOKENS:
        if value := os.environ.get(name, "").strip():
            return value, name
    return None


def usual_api() -> str:
    """GitHub's API, or the one that GITHUB_API_URL names (as in GitHub's own runners)."""
    return os.environ.get("GITHUB_API_URL", "").strip() or GITHUB_API


@dataclass
class Client:
    """Asks one API. `token` is left out of the repr and of every message."""

    api: str = GITHUB_API
    token: str | None = field(default=None, repr=False)
    variable: str = "GITHUB_TOKEN"
    progress: Progress = SILENT
    patience: Patience = PATIENCE
    requests: int = 0
    """Sent so far, repetitions not counted."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.api)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
            raise PatchqError(
                "github_api is not the address of an API",
                f'write it like github_api = "{GITHUB_API}", without user or password',
            )
        if self.token and parts.scheme == "http" and not _loopback(parts.hostname):
            raise PatchqError(
                f"github_api is plain http, and {self.variable} would be readable on the way",
                "write https, or unset the variable",
            )
        self.host = parts.netloc

    def close(self) -> None:
        if "_github" in self.__dict__:
            self._github.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def _github(self) -> Github:
        from github import Auth, Github

        # PyGithub writes its retries to standard error itself.
        logging.getLogger("github").handlers.clear()
        return Github(
            auth=Auth.Token(self.token) if self.token else None,
            base_url=self.api.rstrip("/"),
            timeout=self.patience.timeout,
            retry=self._retry(),
            user_agent="patchq",
            seconds_between_requests=None,
            seconds_between_writes=None,
            per_page=100,
        )

    @property
    def _requester(self) -> Requester:
        return self._github.requester

    @property
    def remaining(self) -> int | None:
        """Requests that the forge still grants; None before it said so."""
        left = self._requester.rate_limiting[0]
        return left if left >= 0 else None

    def query(self, text: str) -> Answer:
        """Asks GraphQL. Errors about parts stand beside the rest, as GitHub gives them.

        Raises ForgeError where nothing came.
        """
        waited = False
        while True:
            body = self._ask("POST", self._requester.graphql_url, {"query": text})
            errors = tuple(each for each in body.get("errors") or () if isinstance(each, dict))
            limited = any(each.get("type") == "RATE_LIMITED" for each in errors)
            if not limited or waited:
                break
            # An answer with status 200: PyGithub knows nothing of this limit.
            self.wait(max(self._requester.rate_limiting_resettime - time.time(), 0) + 1)
            waited = True
        data = body.get("data")
        if not isinstance(data, dict):
            why = show(str(errors[0].get("message", "")))[:200] if errors else "no data"
            raise ForgeError(
                "limit" if limited else "server", f"{self.host} refuses the query: {why}"
            )
        return Answer(data, errors)

    def get(self, path: str, parameters: Mapping[str, str] | None = None) -> Any:
        """The JSON at a path of REST. Raises ForgeError."""
        return self._ask("GET", path, None, parameters)

    def _ask(
        self, verb: str, path: str, input: Any, parameters: Mapping[str, str] | None = None
    ) -> Any:
        def send() -> tuple[Any, Any]:
            return self._requester.requestJsonAndCheck(
                verb, path, dict(parameters or {}), input=input
            )

        return self._heard(verb, send, again=True)

    def _heard(self, verb: str, send: Callable[[], tuple[Any, Any]], *, again: bool) -> Any:
        """The JSON that `send` brings; `again`: asked for once more where it breaks off."""
        import requests
        from github import GithubException

        self.requests += 1
        for more in (again, False):
            try:
                _, body = send()
            except GithubException as error:
                raise self._said(error) from None
            except (requests.exceptions.ChunkedEncodingError, ValueError) as error:
                # The body broke off, which no retry of urllib3 sees.
                if more and not isinstance(error, requests.exceptions.InvalidURL):
                    continue
                raise ForgeError(
                    "answer", f"{self.host} sends answers that break off", "try again later"
                ) from None
            except requests.exceptions.RequestException as error:
                raise self._unreached(error) from None
            except (RuntimeError, AssertionError):
                raise ForgeError(
                    "answer", f"{self.host} leads to another address", "correct github_api"
                ) from None
            except (AttributeError, TypeError):
                break  # an error whose JSON is no object
            if body is None and verb == "DELETE":
                return None
            if not isinstance(body, dict | list) or (verb == "POST" and isinstance(body, list)):
                break
            if verb == "GET" and isinstance(body, dict) and body.keys() <= {"data", "url"}:
                break  # what PyGithub makes of a text that is no JSON
            return body
        raise self.odd()

    def _said(self, error: GithubException) -> ForgeError:
        from github import RateLimitExceededExceedsMaxWait, RateLimitExceededException

        status = error.status
        if isinstance(error, RateLimitExceededExceedsMaxWait):
            return self.limited(error.wait)
        if status == 429 or isinstance(error, RateLimitExceededException):
            return self.limited(None)
        if status == 401 and self.token:
            return ForgeError(
                "token",
                f"{self.host} refuses the token in {self.variable}: it is wrong or has expired",
                "make a new one, or unset the variable",
            )
        if status == 401:
            return ForgeError("token", f"{self.host} wants a token", f"set {TOKENS[0]}")
        if status in (404, 410, 451):
            return ForgeError("absent", f"{self.host} does not have it, or not for these eyes")
        message = error.data.get("message") if isinstance(error.data, dict) else None
        if status == 403:
            return ForgeError(
                "token", f"{self.host} refuses it ({show(str(message or 'status 403'))[:200]})"
            )
        if status in (400, 409, 413, 422):
            return ForgeError("refused", f"{self.host} refuses it ({_reasons(error.data, status)})")
        return ForgeError("server", f"{self.host} answers with status {status}", "try again later")

    def _unreached(self, error: Exception) -> ForgeError:
        from requests import exceptions as e

        if exhausted := re.search(r"too many (\d{3}) error responses", str(error)):
            if exhausted[1] in ("403", "429"):
                return self.limited(None)
            return ForgeError(
                "server", f"{self.host} fails again and again ({exhausted[1]})", "try again later"
            )
        match error:
            case e.ProxyError():
                why = "the proxy cannot be reached"
            case e.SSLError():
                why = "its certificate is not trusted"
            case e.Timeout():
                why = f"no answer within {self.patience.timeout} s"
            case _:
                why = "it cannot be reached"
        return ForgeError("network", f"{self.host}: {why}", "check the network, or use --offline")

    def odd(self) -> ForgeError:
        return ForgeError(
            "answer", f"{self.host} does not answer as GitHub does", "correct github_api"
        )

    def limited(self, seconds: float | None) -> ForgeError:
        """The error for a limit that lasts `seconds` (None: unknown)."""
        for_how_long = f" for {_span(seconds)} more" if seconds else ""
        hint = "try again later" if self.token else f"set {TOKENS[0]}, which raises the limit"
        return ForgeError("limit", f"{self.host} limits requests{for_how_long}", hint)

    def wait(self, seconds: float, why: str = "it limits requests") -> None:
        """Sleeps, and says why. Raises ForgeError where it would be for too long."""
        if seconds > self.patience.longest:
            raise self.limited(seconds)
        if seconds >= 1:
            self.progress.step(f"waiting {_span(seconds)} for {self.host}: {why}")
        time.sleep(seconds)

    def _retry(self) -> GithubRetry:
        return retries(self.patience, self.wait)


def _loopback(host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def _reasons(data: Any, status: int) -> str:
    """What an answer says about a request that it cannot do, in a line."""
    told = data if isinstance(data, dict) else {}
    errors = told.get("errors")
    parts = [
        each.get("message") or each.get("code")
        for each in (errors if isinstance(errors, list) else ())
        if isinstance(each, dict)
    ]
    words = [str(word) for word in (told.get("message"), *parts) if word]
    return show("; ".join(words) or f"status {status}")[:200]


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
