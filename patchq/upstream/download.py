"""Archives from the index into a folder: resumed, verified, switched in at once.

An archive is either there, whole and with the sha256 that the index states, or it is not: what
is under way stands in FILE.part and goes on from there the next time.
"""

from __future__ import annotations

import errno
import hashlib
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from patchq.errors import PatchqError
from patchq.progress import SILENT, Progress
from patchq.upstream import http
from patchq.upstream.http import local_path, redact
from patchq.upstream.origin import INDEX, Origin, stored
from patchq.upstream.pages import Dist
from patchq.upstream.pipconf import IndexSettings

if TYPE_CHECKING:
    from requests import Response, Session

_ATTEMPTS = 5
_PAUSE = 0.5
_CHUNK = 1 << 18
_GAIN = 1 << 20
"""Bytes after which a connection that breaks again counts as progress, not as one more failure."""
_MAX_SIZE = 4 << 30
_SHA256 = re.compile(r"[0-9a-f]{64}")
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]*")
_RANGE = re.compile(r"bytes (\d+)-\d+/(?:\d+|\*)")


@contextmanager
def alone(dist: Dist, folder: Path, progress: Progress = SILENT) -> Iterator[None]:
    """Be the only patchq that brings this archive: waits for another one as long as it lives.

    Raises PatchqError where the archive cannot be verified, or `folder` not be written.
    """
    from filelock import FileLock, Timeout

    _check(dist)
    lock = FileLock(folder / f"{dist.filename}.lock")
    timeout = 0.0
    with stored(dist.filename, folder, INDEX):
        while not lock.is_locked:
            try:
                lock.acquire(timeout=timeout)
            except Timeout:
                timeout = 1.0
                progress.step(f"waiting for another patchq that brings {dist.filename}")
    try:
        yield
    finally:
        lock.release()


def fetch(
    dist: Dist,
    folder: Path,
    settings: IndexSettings,
    progress: Progress = SILENT,
    *,
    offline: bool = False,
    origin: Origin = INDEX,
) -> Path:
    """The archive in `folder`, downloaded unless it is there with the right sha256.

    To be called `alone`. Raises PatchqError: no sha256 stated, a wrong one, not reachable, folder
    full or read-only; `offline`: not there, or damaged.
    """
    _check(dist)
    target = folder / dist.filename
    with stored(dist.filename, folder, origin):
        folder.mkdir(parents=True, exist_ok=True)
        if not _is_right(target, dist):
            if offline and local_path(dist.url) is None:
                damaged = (
                    f"{target} is damaged" if target.exists() else f"{target.name} is not here"
                )
                raise PatchqError(
                    f"{damaged}, and --offline forbids to download it",
                    "run it once without --offline",
                )
            _Download(dist, target, settings, progress, origin).run()
    return target


def _check(dist: Dist) -> None:
    if not _FILE_NAME.fullmatch(dist.filename):
        raise PatchqError(
            f"the index names an archive {dist.filename!r}, which is no plain file name",
            "use another index or a git source",
        )
    if not _SHA256.fullmatch(dist.sha256):
        raise PatchqError(
            f"the index gives no sha256 for {dist.filename}, so it cannot be verified",
            "use another index or a git source",
        )


def _is_right(path: Path, dist: Dist) -> bool:
    try:
        if dist.size is not None and path.stat().st_size != dist.size:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == dist.sha256
    except (FileNotFoundError, NotADirectoryError):
        return False


class _BrokenOffError(Exception):
    """An attempt ended early; `str()` says why. Another one may go on from there."""


@dataclass(frozen=True)
class _Start:
    """The server's answer: the body begins at byte `at`, `total` bytes in all if known."""

    at: int
    total: int | None


class _Download:
    def __init__(
        self,
        dist: Dist,
        target: Path,
        settings: IndexSettings,
        progress: Progress,
        origin: Origin,
    ) -> None:
        self._dist = dist
        self._target = target
        self._part = target.with_name(f"{target.name}.part")
        self._settings = settings
        self._progress = progress
        self._origin = origin
        self._etag = ""

    def run(self) -> None:
        self._check_space()
        resumed = self._get()
        actual = self._digest()
        if actual != self._dist.sha256 and resumed:
            # Pieces of two answers, of which one was bad: once more in one piece.
            self._part.unlink(missing_ok=True)
            self._get()
            actual = self._digest()
        if actual != self._dist.sha256:
            self._part.unlink(missing_ok=True)
            raise PatchqError(
                f"{self._dist.filename} from {self._where} is not what {self._origin.who}"
                f" promises: sha256 {actual} instead of {self._dist.sha256}",
                self._origin.wrong,
            )
        self._part.replace(self._target)

    @property
    def _where(self) -> str:
        return redact(self._dist.url)

    @property
    def _limit(self) -> int:
        return _MAX_SIZE if self._dist.size is None else self._dist.size

    def _have(self) -> int:
        try:
            return self._part.stat().st_size
        except FileNotFoundError:
            return 0

    def _check_space(self) -> None:
        missing = (self._dist.size or 0) - self._have()
        if shutil.disk_usage(self._target.parent).free < missing:
            raise OSError(errno.ENOSPC, "not enough space")

    def _digest(self) -> str:
        with self._part.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def _get(self) -> bool:
        """Fills FILE.part; whether it comes from more than one answer."""
        local = local_path(self._dist.url)
        if local is not None:
            self._copy(local)
            return False
        with http.open_session(self._settings) as session:
            return self._get_remote(session)

    def _copy(self, source: Path) -> None:
        try:
            file = source.open("rb")
        except OSError as error:
            raise PatchqError(
                f"{source}, which {self._origin.who} names, cannot be read: {error.strerror}",
                f"check the folder of {self._origin.who}",
            ) from error
        with file:
            self._write(_Start(0, None), iter(lambda: file.read(_CHUNK), b""))

    def _get_remote(self, session: Session) -> bool:
        if self._have() > self._limit:
            self._part.unlink()
        resumed = self._have() > 0
        failures = 0
        while True:
            before = self._have()
            if before and before == self._dist.size:
                return resumed
            try:
                self._attempt(session, before)
                return resumed
            except _BrokenOffError as error:
                gained = self._have() - before
                failures = 1 if gained >= _GAIN else failures + 1
                if failures >= _ATTEMPTS:
                    raise PatchqError(
                        f"{self._dist.filename} was not downloaded from {self._where}: {error}",
                        "check the network and run it again: it goes on where it ended",
                    ) from error
            resumed = resumed or self._have() > 0
            time.sleep(_PAUSE * 2 ** (failures - 1))

    def _attempt(self, session: Session, have: int) -> None:
        from requests import RequestException
        from urllib3.exceptions import HTTPError

        # Unencoded: a server that "compresses" the archive would have it unpacked on the way.
        headers = {**self._origin.headers, "Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
            if self._etag:
                headers["If-Range"] = self._etag
        try:
            with http.get(session, self._dist.url, self._settings, headers) as response:
                start = self._judge(response, have)
                self._write(start, response.raw.stream(_CHUNK, decode_content=False))
        except (RequestException, HTTPError) as error:
            raise _BrokenOffError(http.reason(error, self._settings)) from error

    def _judge(self, response: Response, have: int) -> _Start:
        status = response.status_code
        if status == 416:
            self._part.unlink(missing_ok=True)
            raise _BrokenOffError("the server has less than was downloaded before")
        if status >= 500 or status in (408, 429):
            raise _BrokenOffError(f"the server answered {status} {response.reason}")
        found = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if status not in (200, 206) or (status == 206 and not found):
            raise PatchqError(
                f"{self._dist.filename} cannot be downloaded from {self._where}:"
                f" the server answered {status} {response.reason}",
                self._origin.refused,
            )
        etag = response.headers.get("ETag", "")
        self._etag = etag if etag.startswith('"') else ""
        length = response.headers.get("Content-Length", "")
        start = int(found[1]) if found and status == 206 else 0
        if start not in (0, have):
            self._part.unlink(missing_ok=True)
            raise _BrokenOffError("the server sent another part than was asked for")
        total = start + int(length) if length.isdigit() else None
        return _Start(start, self._dist.size if self._dist.size is not None else total)

    def _write(self, start: _Start, chunks: Iterator[bytes]) -> None:
        what = f"downloading {self._dist.filename}"
        done = start.at
        try:
            with self._part.open("r+b" if start.at else "wb") as file:
                file.seek(start.at)
                self._progress.step(what, done, start.total, "B")
                for chunk in chunks:
                    done += len(chunk)
                    _put(file, chunk)
                    self._progress.step(what, done, start.total, "B")
                    if done > self._limit:
                        break
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                self._part.unlink(missing_ok=True)
            raise
        if start.total is not None and done < start.total:
            raise _BrokenOffError(f"the connection ended after {done} of {start.total} bytes")


def _put(file: BinaryIO, chunk: bytes) -> None:
    """Its own function, so that a test can fill the disk."""
    file.write(chunk)
