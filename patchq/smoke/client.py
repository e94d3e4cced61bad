"""Asks a running server over HTTP: whole answers, streams, and what it says of itself.

Every fault is told by one of two exceptions: NotRun where there was no whole answer, Wrong where
the server refused what a user may ask.
"""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from patchq.errors import Incomplete, PatchqError, UsageError
from patchq.smoke import metrics
from patchq.smoke.metrics import Metrics
from patchq.smoke.model import About, NotRun, Refused, Wrong
from patchq.smoke.spin import Limits
from patchq.smoke.stream import Gatherer, Reply, events
from patchq.upstream.http import redact

if TYPE_CHECKING:
    from requests import Response

CONNECT = 10.0
"""Seconds in which a connection must come about."""
PATIENCE = 120.0
"""Seconds without a byte after which there is no answer."""
LONGEST = 10
"""Times the patience: no answer takes longer as a whole."""
_LARGEST = 64 << 20
_NOT_THERE = (401, 403, 404, 405)
"""It does not have that, or not for us: nothing is said about its answers."""


def address(text: str) -> str:
    """The address of a server without what its clients append. Raises UsageError."""
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise UsageError(
            f"{redact(text)} is no address of a server", "write one as http://localhost:8000"
        )
    return text.rstrip("/").removesuffix("/v1").rstrip("/")


class Client:
    """`patience` in seconds. VLLM_API_KEY is sent where it is set, as vLLM's own name for it.

    `limits`: what counts as spinning. `under_way`: the streams that are being read. `broken_off`:
    the paths of streams that were not read to their end; the server counts them as aborted.
    """

    def __init__(
        self, url: str, *, patience: float = PATIENCE, limits: Limits | None = None
    ) -> None:
        self.url = address(url)
        self.patience = patience
        self.limits = limits
        self.under_way: set[Gatherer] = set()
        self.broken_off: list[str] = []
        key = os.environ.get("VLLM_API_KEY", "")
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    def about(self) -> About:
        """Raises Incomplete where nobody answers, PatchqError where it is no such server."""
        shown = redact(self.url)
        try:
            models = self.get("/v1/models")
            first = models["data"][0]
            context = first.get("max_model_len")
            model = str(first["id"])
        except NotRun as missed:
            raise Incomplete(
                f"{shown}: {missed}",
                "start the server, or correct the address; its key is read from VLLM_API_KEY",
            ) from None
        except Wrong as refused:
            raise PatchqError(f"{shown}: {refused}", "name the server's root") from None
        except (KeyError, IndexError, TypeError, AttributeError):
            raise PatchqError(
                f"{shown} names no model at /v1/models", "name the root of an OpenAI-like server"
            ) from None
        try:
            version = self.get("/version")
        except (NotRun, Wrong):
            version = None  # not every server has it
        return About(
            shown,
            model,
            context if isinstance(context, int) and context > 0 else None,
            version if isinstance(version, dict) else None,
        )

    def get(self, path: str) -> Any:
        """Its JSON."""
        with self._answer("GET", path) as response:
            return _json(response, path, self._read(response))

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Its JSON."""
        with self._answer("POST", path, body) as response:
            return _json(response, path, self._read(response))

    def healthy(self) -> None:
        """Raises NotRun or Wrong."""
        with self._answer("GET", "/health") as response:
            self._read(response)

    def metrics(self) -> Metrics:
        with self._answer("GET", "/metrics") as response:
            return metrics.parse(self._read(response).decode("utf-8", "replace"))

    def stream(self, path: str, body: Mapping[str, Any]) -> Reply:
        """The streamed answer; stopped where it spins. Raises NotRun or Wrong."""
        began = time.monotonic()
        gatherer = Gatherer(self.limits)
        whole = False
        self.under_way.add(gatherer)
        try:
            with closing(self.events(path, body)) as coming:
                for data in coming:
                    if gatherer.reply.first is None:
                        gatherer.reply.first = time.monotonic() - began
                    if not gatherer.take(data):
                        break
                else:
                    whole = True
        finally:
            self.under_way.discard(gatherer)
            if not whole:
                self.broken_off.append(path)
        reply = gatherer.end()
        reply.seconds = time.monotonic() - began
        return reply

    def events(self, path: str, body: Mapping[str, Any]) -> Generator[str, None, None]:
        """The data of each event as it comes, whatever it says. Raises NotRun or Wrong."""
        asked = {**body, "stream": True, "stream_options": {"include_usage": True}}
        with self._answer("POST", path, asked) as response:
            yield from events(self._chunks(response))

    def patient(self, patience: float) -> Client:
        """The same, which waits longer."""
        other = copy.copy(self)
        other.patience = max(patience, self.patience)
        return other

    @contextmanager
    def _answer(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> Iterator[Response]:
        import requests

        try:
            with requests.request(
                method,
                self.url + path,
                json=body,
                headers=self._headers,
                stream=True,
                allow_redirects=False,
                timeout=(min(CONNECT, self.patience), self.patience),
            ) as response:
                if (status := response.status_code) != 200:
                    says = _refusal(path, response, self._read(response))
                    raise NotRun(says) if status in _NOT_THERE else Refused(says, status)
                yield response
        except requests.RequestException as error:
            raise NotRun(self._why(error, path)) from None

    def _chunks(self, response: Response) -> Iterator[bytes]:
        until = time.monotonic() + LONGEST * self.patience
        size = 0
        for chunk in response.iter_content(chunk_size=None):
            size += len(chunk)
            if size > _LARGEST:
                raise NotRun(f"the answer is larger than {_LARGEST >> 20} MB")
            if time.monotonic() > until:
                raise NotRun(f"the answer took more than {LONGEST * self.patience:g} s")
            yield chunk

    def _read(self, response: Response) -> bytes:
        return b"".join(self._chunks(response))

    def _why(self, error: Exception, path: str) -> str:
        """In words without an address: the library's texts hold it, and with it a password."""
        from requests import exceptions as e
        from urllib3.exceptions import ReadTimeoutError

        late = isinstance(error, e.ReadTimeout) or any(
            isinstance(each, ReadTimeoutError) for each in error.args
        )
        if late:
            return f"{path}: accepted, but no answer within {self.patience:g} s"
        match error:
            case e.ConnectTimeout():
                return f"{path}: no connection within {min(CONNECT, self.patience):g} s"
            case e.SSLError():
                return f"{path}: no encrypted connection comes about"
            case e.ChunkedEncodingError() | e.ContentDecodingError():
                return f"{path}: the stream was cut"
            case e.ConnectionError():
                return f"{path}: it cannot be reached, or it hung up"
        return f"{path}: the request failed ({type(error).__name__})"


def _json(response: Response, path: str, raw: bytes) -> Any:
    import json

    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        raise Wrong(f"{path} does not answer with JSON") from None


def _refusal(path: str, response: Response, raw: bytes) -> str:
    import json

    told: Any = raw.decode("utf-8", "replace")
    try:
        told = json.loads(raw)
        told = told.get("error", told)
        told = told.get("message", told)
    except (ValueError, AttributeError, RecursionError):
        pass
    said = " ".join(str(told).split())[:300]
    return f"{path} answers {response.status_code}" + (f": {said}" if said else "")
