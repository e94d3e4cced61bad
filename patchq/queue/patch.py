"""One numbered patch: a file of the series as a value."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from patchq.errors import PatchqError
from patchq.queue import diff as diffs
from patchq.queue import header as headers
from patchq.queue.diff import FileDiff, NotCanonical
from patchq.queue.header import Header

FILE = re.compile(r"^([0-9]{4}|[1-9][0-9]{4,})-([a-z0-9][a-z0-9._+-]*)\.patch\Z")


@dataclass(frozen=True)
class Patch:
    """`head` is everything up to and with the `---` line as it stands in the file."""

    number: int
    name: str
    head: bytes
    header: Header
    diff: bytes

    @property
    def file(self) -> str:
        return file_name(self.number, self.name)

    @property
    def text(self) -> bytes:
        """The file's bytes."""
        return self.head + self.diff

    @cached_property
    def files(self) -> tuple[FileDiff, ...] | None:
        """What it does to each path, or None where only git can read its diff."""
        try:
            return diffs.parse(self.diff, self.file)
        except NotCanonical:
            return None

    @property
    def author(self) -> tuple[str, str]:
        """Name and mail."""
        return headers.person(self.header.get("From"))

    @property
    def date(self) -> datetime:
        """When it was made; a patch without a date is as old as the epoch."""
        value = self.header.get("Date") or "Thu, 1 Jan 1970 00:00:00 +0000"
        return headers.when(value, self.file)

    def with_diff(self, diff: bytes) -> Patch:
        return self if diff == self.diff else replace(self, diff=diff)

    def with_header(self, header: Header) -> Patch:
        return replace(self, header=header, head=headers.format(header))


def file_name(number: int, name: str) -> str:
    return f"{number:04d}-{name}.patch"


def make(number: int, name: str, header: Header, diff: bytes) -> Patch:
    """A new patch in canonical form; its header gets its name."""
    header = header.replace("Patchq-Name", name)
    return Patch(number, name, headers.format(header), header, diff)


def parse(file: str, data: bytes) -> Patch:
    """The patch in `file` (its name inside the series folder).

    Raises PatchqError where name, header or diff is malformed.
    """
    found = FILE.match(file)
    if not found:
        raise PatchqError(
            f"{file} is not a patch of a series: its name is not NNNN-name.patch",
            "bring it in with `patchq import`",
        )
    header, diff = headers.parse(data, file)
    name = header.get("Patchq-Name") or found[2]
    if name != found[2]:
        raise PatchqError(
            f"{file} calls itself {name!r} in its Patchq-Name field",
            "make the file's name and the field agree",
        )
    # Everything before the diff stays as it is: a file that did not change is not rewritten.
    head = data[: len(data) - len(diff)]
    return Patch(int(found[1]), name, head, header, diff)


def slug(subject: str, taken: frozenset[str] | set[str] = frozenset()) -> str:
    """A name made of a subject: lower case, tags dropped, at most 50 characters, not in `taken`."""
    plain = re.sub(r"^(\s*\[[^\]]*\])+", "", subject).lower()
    words = re.sub(r"[^a-z0-9]+", "-", plain.encode("ascii", "ignore").decode()).strip("-")
    if not words:
        words = re.sub(r"[^a-z0-9]+", "-", subject.lower()).strip("-") or "patch"
    base = words[:50].rstrip("-")
    name, count = base, 1
    while name in taken:
        count += 1
        name = f"{base}-{count}"
    return name


def empty_diff(path: bytes) -> bytes:
    """The diff of a patch that changes nothing: `path` renamed to itself.

    The one no-op that git apply, git am, patch, quilt and stg all take.
    """
    name = quote(b"a/" + path), quote(b"b/" + path), quote(path)
    return b"diff --git %s %s\nsimilarity index 100%%\n" % (
        name[0],
        name[1],
    ) + b"rename from %s\nrename to %s\n" % (name[2], name[2])


def quote(path: bytes) -> bytes:
    """`path` as git writes it with core.quotePath."""
    if not re.search(rb'[\x00-\x1f"\\\x7f-\xff]', path):
        return path
    letters = {value: key for key, value in diffs._LETTERS.items()} | {34: b'"', 92: b"\\"}
    out = bytearray(b'"')
    for byte in path:
        if byte in letters:
            out += b"\\" + letters[byte]
        elif byte < 0x20 or byte >= 0x7F:
            out += b"\\%03o" % byte
        else:
            out.append(byte)
    return bytes(out + b'"')
