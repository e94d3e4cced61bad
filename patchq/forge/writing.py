"""A connection that changes things on GitHub: nothing is sent twice unless that does no harm.

PyGithub repeats a POST after a 502 or a lost answer, and so makes two of what was asked for
once (measured with 2.10). Here only limits (403, 429) are waited for and repeated; whatever else
stands between us and an answer is raised, and who writes looks what became of it. A file goes up as
it is read, with a time limit for each read and write, which PyGithub leaves out for other hosts.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from patchq.forge.client import Client
from patchq.forge.errors import ForgeError
from patchq.forge.retries import retries
from patchq.progress import Progress

if TYPE_CHECKING:
    from github import GithubRetry


class Writer(Client):
    """A client that also writes."""

    def write(self, verb: str, path: str, value: Any = None) -> Any:
        """Sends JSON by POST, PATCH or DELETE to a path of REST. Raises ForgeError."""
        return self._heard(
            verb,
            lambda: self._requester.requestJsonAndCheck(verb, path, {}, input=value),
            again=False,
        )

    def upload(self, url: str, name: str, file: Path) -> Any:
        """Sends a file to an address that a release names (without `{?name,label}`).

        Raises ForgeError, and OSError where the file cannot be read.
        """
        from github.Requester import HTTPRequestsConnectionClass, HTTPSRequestsConnectionClass

        parts = urlsplit(url)
        if not self._is_ours(url):
            raise ForgeError(
                "answer",
                f"{self.host} wants files sent to another host, {parts.hostname}",
                "correct github_api",
            )
        size = file.stat().st_size
        plain = parts.scheme == "http"
        kind = HTTPRequestsConnectionClass if plain else HTTPSRequestsConnectionClass
        connection = kind(
            parts.hostname or "",
            parts.port,
            retry=self._retry(),
            pool_size=1,
            timeout=self.patience.timeout,
        )
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        try:
            with file.open("rb") as opened:
                return self._heard(
                    "POST",
                    lambda: self._requester.requestMemoryBlobAndCheck(
                        "POST",
                        url,
                        {"name": name},
                        headers,
                        _Told(opened, size, f"sending {name}", self.progress),  # type: ignore[arg-type]
                        cnx=connection,
                    ),
                    again=False,
                )
        finally:
            connection.close()

    def _is_ours(self, url: str) -> bool:
        """Whether the token may go there: the API's own host, or GitHub's for uploads beside it."""
        there, here = urlsplit(url), urlsplit(self.api)
        if (there.scheme, there.netloc) == (here.scheme, here.netloc):
            return True
        host = (here.hostname or "").removeprefix("api.")
        return there.scheme == "https" and there.netloc == f"uploads.{host}"

    def _retry(self) -> GithubRetry:
        return retries(self.patience, self.wait, writes=True)


class _Told(io.RawIOBase):
    """A file as a request's body: its length is known, and each read is told as progress."""

    def __init__(self, file: io.BufferedReader, size: int, what: str, progress: Progress) -> None:
        self._file = file
        self._size = size
        self._what = what
        self._progress = progress
        self._next = 0

    def __len__(self) -> int:
        return self._size

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        done = self._file.tell()
        if done >= self._next:
            self._next = done + (1 << 20)
            self._progress.step(self._what, done, self._size, "B")
        return data

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._next = 0
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()
