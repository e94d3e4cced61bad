"""A package index on loopback, with the ways in which real servers misbehave; and archives."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import os
import re
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from patchq.upstream import download, pages
from patchq.upstream.index import IndexAnswer
from patchq.upstream.pipconf import IndexSettings

JSON = "application/vnd.pypi.simple.v1+json"
HTML = "text/html; charset=utf-8"


@dataclass
class Reply:
    """What a path answers. `cuts`: for each coming request the bytes after which it breaks off."""

    data: bytes = b""
    kind: str = "application/octet-stream"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)
    ranges: bool = True
    etag: str = ""
    failures: list[int] = field(default_factory=list)
    chunked: bool = False
    delay: float = 0.0


@dataclass(frozen=True)
class Asked:
    path: str
    headers: dict[str, str]


class Site:
    """`replies` by path; `log` is every request so far."""

    def __init__(self) -> None:
        self.replies: dict[str, Reply] = {}
        self.log: list[Asked] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.host = self.url.removeprefix("http://")

    def stop(self) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()

    def asked(self, path: str) -> int:
        return sum(asked.path == path for asked in self.log)

    def add(self, path: str, data: bytes = b"", **more: Any) -> Reply:
        self.replies[path] = Reply(data, **more)
        return self.replies[path]

    def add_package(self, name: str, *files: dict[str, Any], base: str = "/simple") -> Reply:
        """A page in the index's JSON form; each file as PEP 691 has it."""
        page = {"meta": {"api-version": "1.1"}, "name": name, "files": list(files)}
        return self.add(f"{base}/{name}/", json.dumps(page).encode(), kind=JSON)

    def _handler(site) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - self is the handler
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                site.log.append(Asked(self.path, dict(self.headers)))
                _answer(self, site.replies.get(self.path.partition("?")[0], Reply(status=404)))

            def log_message(self, *_: Any) -> None:
                return

        return Handler


def _answer(handler: BaseHTTPRequestHandler, reply: Reply) -> None:
    status = reply.failures.pop(0) if reply.failures else reply.status
    data, headers = reply.data, {"Content-Type": reply.kind, **reply.headers}
    asked = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range", ""))
    wanted = handler.headers.get("If-Range") in (None, reply.etag)
    if status == 200 and asked and reply.ranges and wanted:
        start = int(asked[1])
        if start >= len(data):
            status, data = 416, b""
        else:
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
            status, data = 206, data[start:]
    if reply.etag:
        headers["ETag"] = reply.etag
    if not reply.chunked:
        headers.setdefault("Content-Length", str(len(data)))
    cut = reply.cuts.pop(0) if reply.cuts else None
    handler.send_response(status)
    for name, value in (headers | {"Connection": "close"}).items():
        handler.send_header(name, value)
    handler.close_connection = True
    time.sleep(reply.delay)
    with contextlib.suppress(ConnectionError):
        handler.end_headers()
        handler.wfile.write(data if cut is None else data[:cut])


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.stop()


@pytest.fixture
def settings(site: Site) -> IndexSettings:
    """An index at /simple of the site."""
    return IndexSettings(urls=(f"{site.url}/simple",), timeout=2.0)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_PAUSE", 0.0)
    monkeypatch.setattr(pages, "_PAUSE", 0.0)


def entry(filename: str, data: bytes = b"archive", **more: Any) -> dict[str, Any]:
    """A file of an index page; its archive lies at /files/FILENAME."""
    return {
        "filename": filename,
        "url": f"/files/{filename}",
        "hashes": {"sha256": hashlib.sha256(data).hexdigest()},
        "size": len(data),
        "yanked": False,
    } | more


def versions(answer: IndexAnswer) -> list[str]:
    return [each.version for each in answer.sdists]


TOP = "pkg-1.0"


class Tar:
    """Builds an archive member by member, sound or not."""

    def __init__(self, form: int = tarfile.PAX_FORMAT) -> None:
        self.raw = io.BytesIO()
        self.tar = tarfile.open(  # noqa: SIM115
            fileobj=self.raw, mode="w", format=form, encoding="utf-8", errors="surrogateescape"
        )

    def add(self, name: str | bytes, data: bytes = b"x", **more: object) -> Tar:
        info = tarfile.TarInfo(os.fsdecode(name))
        info.size, info.mode = len(data), 0o664
        for key, value in more.items():
            setattr(info, key, value)
        self.tar.addfile(info, io.BytesIO(data))
        return self

    def tree(self, **files: bytes) -> Tar:
        for name, data in files.items():
            self.add(f"{TOP}/{name}", data)
        return self

    def bytes(self) -> bytes:
        self.tar.close()
        return self.raw.getvalue()


Pack = Callable[[Tar | bytes], Path]


@pytest.fixture
def packed(tmp_path: Path) -> Pack:
    def pack(content: Tar | bytes) -> Path:
        data = content.bytes() if isinstance(content, Tar) else content
        path = tmp_path / "pkg-1.0.tar.gz"
        path.write_bytes(gzip.compress(data, 1, mtime=0))
        return path

    return pack
