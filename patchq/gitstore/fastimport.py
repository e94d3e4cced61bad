"""Write commits fast: one `git fast-import` for a whole series or a whole archive.

Objects are stored without deltas (`--depth=0`): a store that is read file by file is slow
with them, and it is never repacked.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from patchq.errors import PatchqError
from patchq.gitstore.git import no_git, plumbing_env

AT_ONCE = 500
"""Marks asked for before the answers are read: both fit into the pipes' buffers."""

_SPECIAL = re.compile(rb'[\x00-\x1f"\\]')


@dataclass(frozen=True, slots=True)
class Ident:
    """Who and when: `when` in seconds since the epoch, `zone` as "+0200"."""

    name: bytes
    mail: bytes
    when: int
    zone: str = "+0000"

    def raw(self) -> bytes:
        name, mail = (text.translate(None, b"<>\n\0") for text in (self.name, self.mail))
        return b"%s <%s> %d %s" % (name, mail, self.when, self.zone.encode())


@dataclass(frozen=True, slots=True)
class Write:
    """Put `data` (or the stored object `oid`) at `path`; both None removes the path."""

    path: bytes
    mode: str = "100644"
    data: bytes | None = None
    oid: str | None = None


def quote(path: bytes) -> bytes:
    """`path` as fast-import reads it: always quoted, C escapes."""
    if not _SPECIAL.search(path):
        return b'"%b"' % path
    out = bytearray(b'"')
    for byte in path:
        if byte in b'"\\':
            out += b"\\" + bytes([byte])
        elif byte < 0x20:
            out += b"\\%03o" % byte
        else:
            out.append(byte)
    return bytes(out + b'"')


class FastImport:
    """A running import into the repository at `git_dir`; `finish()` makes it readable."""

    def __init__(self, git_dir: Path, *, compression: int = 1) -> None:
        """`compression`: zlib's level. Few objects of a series are not worth the time."""
        self._ref = f"refs/patchq/import-{os.getpid()}-{id(self):x}".encode()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in finish and abort
        try:
            self._process = subprocess.Popen(
                [
                    "git",
                    f"--git-dir={git_dir}",
                    "-c",
                    f"pack.compression={compression}",
                    # A cache: what a power cut tears is made anew.
                    "-c",
                    "core.fsync=none",
                    "fast-import",
                    "--quiet",
                    "--force",
                    "--done",
                    "--depth=0",
                    "--date-format=raw-permissive",
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=plumbing_env(),
            )
        except FileNotFoundError as error:
            self._errors.close()
            raise no_git() from error
        assert self._process.stdin and self._process.stdout
        self._in = self._process.stdin
        self._out = self._process.stdout
        self._marks = 0

    def commit(
        self, message: bytes, author: Ident, parent: str | int | None, writes: Iterable[Write]
    ) -> int:
        """Add a commit on `parent` (an id, an earlier mark, or None) and return its mark."""
        self._marks += 1
        put = self._put
        if parent is None:
            put(b"reset %s\n\n" % self._ref)
        put(b"commit %s\nmark :%d\n" % (self._ref, self._marks))
        put(b"author %s\ncommitter %s\n" % (author.raw(), author.raw()))
        put(b"data %d\n%s\n" % (len(message), message))
        if parent is not None:
            name = f":{parent}" if isinstance(parent, int) else parent
            put(b"from %s\n" % name.encode())
        ordered = list(writes)
        # A file may take a folder's place (or the other way round): removals come first.
        for write in ordered:
            if write.data is None and write.oid is None:
                put(b"D %s\n" % quote(write.path))
        for write in ordered:
            if write.data is not None:
                put(b"M %s inline %s\n" % (write.mode.encode(), quote(write.path)))
                put(b"data %d\n" % len(write.data))
                put(write.data)
                put(b"\n")
            elif write.oid is not None:
                put(b"M %s %s %s\n" % (write.mode.encode(), write.oid.encode(), quote(write.path)))
        put(b"\n")
        return self._marks

    def finish(self) -> list[str]:
        """Close the import; the ids of all commits, first mark first."""
        ids: list[str] = []
        for start in range(1, self._marks + 1, AT_ONCE):
            marks = range(start, min(start + AT_ONCE, self._marks + 1))
            self._put(b"".join(b"get-mark :%d\n" % mark for mark in marks))
            self._flush()
            ids += [self._out.readline().decode().strip() for _ in marks]
        self._put(b"reset %s\nfrom %s\n\ndone\n" % (self._ref, b"0" * 40))
        try:
            self._in.close()
        except OSError as error:
            raise self._failed() from error
        self._out.close()
        if self._process.wait() != 0 or not all(ids):
            raise self._failed()
        self._errors.close()
        return ids

    def abort(self) -> None:
        """Give up: nothing of this import becomes visible."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for stream in (self._in, self._out, self._errors):
            with suppress(OSError):
                stream.close()

    def __enter__(self) -> FastImport:
        return self

    def __exit__(self, *_: object) -> None:
        self.abort()

    def _put(self, data: bytes) -> None:
        try:
            self._in.write(data)
        except OSError as error:
            raise self._failed() from error

    def _flush(self) -> None:
        try:
            self._in.flush()
        except OSError as error:
            raise self._failed() from error

    def _failed(self) -> PatchqError:
        self._process.wait()
        self._errors.seek(0)
        text = self._errors.read().decode("utf-8", "replace")
        lines = [line for line in text.splitlines() if line.startswith(("fatal:", "error:"))]
        why = lines[0].split(":", 1)[1].strip() if lines else "git fast-import stopped"
        return PatchqError(
            f"the store could not be written: {why}",
            "make room or repair the cache folder, then run the command again",
        )
