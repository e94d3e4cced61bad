"""Patches as people bring them: mails of `git format-patch`, DEP-3 files, bare diffs, commits.

Read into a header and a diff; the diff is put into canonical form later, by git.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from email import message_from_bytes
from email.errors import MessageError
from email.header import decode_header
from email.message import Message

from patchq.errors import PatchqError
from patchq.queue import header as headers
from patchq.queue.header import Header
from patchq.queue.patch import Patch

_MBOX = re.compile(rb"^From [0-9a-f]{40} Mon Sep 17 00:00:00 2001\r?\n", re.MULTILINE)
_DIFF = re.compile(rb"^(?:diff --git |diff -|Index: |--- \S|\*\*\* \S)", re.MULTILINE)
# `-- ` may be a line of the diff, too: what follows it then is one as well, or nothing.
_SIGNATURE = re.compile(rb"\n-- \n[^\n +\-\\@][^\n]*\n*\Z")
_WORD = r"=\?[^?\s]+\?[bBqQ]\?[^?\s]*\?="
_WORDS = re.compile(rf"{_WORD}(?:\s+{_WORD})*")
_WORD_BYTES = 42
"""Of text in one encoded word: with its frame it stays below 75 characters."""
_PREFIX = re.compile(r"^\[PATCH[^\]]*\]\s*")
_PULL = re.compile(r"https?://[^/\s]+/([A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+)/pull/(\d+)")
_TRAILER = re.compile(r"^(Patchq-[A-Za-z-]+|Origin|Upstream-Status): (.*)$")
_OURS = "X-Patchq-Trailers"
"""In a mail that `mail` wrote: how many of its text's last lines are header fields. The rest of the
text is escaped as in a patch file."""
DANGEROUS = ("Patchq-Check", "Patchq-Drop-When")
"""Fields that would become commands or rules: never taken from outside."""


@dataclass(frozen=True)
class Brought:
    """A patch from outside: `name` is what it calls itself, `left_out` the fields not taken."""

    header: Header
    diff: bytes
    name: str = ""
    left_out: tuple[str, ...] = ()


def read(data: bytes, where: str) -> list[Brought]:
    """All patches of a file: an mbox has many.

    Raises PatchqError where there is no diff in it.
    """
    starts = [found.start() for found in _MBOX.finditer(data)]
    if starts and starts[0] == 0:
        pieces = [data[a:b] for a, b in zip(starts, [*starts[1:], len(data)], strict=True)]
        return [_mail(_MBOX.sub(b"", piece, count=1), where) for piece in pieces]
    if re.match(rb"^(?:From|Date|Subject|Message-Id): ", data, re.IGNORECASE):
        return [_own(data, where) or _mail(data, where)]
    return [_bare(data, where)]


def _own(data: bytes, where: str) -> Brought | None:
    """A file in our own form."""
    if not re.search(rb"^Patchq-Name: ", data.partition(b"\n\n")[0], re.MULTILINE):
        return None
    header, diff = headers.parse(data, where)
    return _cleaned(list(header.fields), header.body, diff)


def _mail(data: bytes, where: str) -> Brought:
    message = message_from_bytes(data)
    payload = message.get_payload(decode=True)
    text = payload if isinstance(payload, bytes) else b""
    if "content-transfer-encoding" not in message:
        # The parser would turn line ends of the diff; the bytes behind the header are the text.
        text = re.split(rb"\r?\n\r?\n", data, maxsplit=1)[-1]
    body, diff = _parts(text, where)
    fields = [
        ("From", _decoded(message, "From")),
        ("Date", _decoded(message, "Date")),
        ("Subject", _PREFIX.sub("", _decoded(message, "Subject"))),
    ]
    ours = _decoded(message, _OURS)
    body, trailers = _own_trailers(body, int(ours)) if ours.isdecimal() else _trailers(body)
    return _cleaned([*fields, *trailers], body, diff)


def _bare(data: bytes, where: str) -> Brought:
    """A DEP-3 header or free text before a diff; the subject is its first line."""
    body, diff = _parts(data, where)
    fields: list[tuple[str, str]] = []
    lines = body.split("\n")
    for line in lines:
        found = re.match(r"^(Subject|Description|From|Author|Date|Origin): (.*)$", line)
        if found:
            known = {"Description": "Subject", "Author": "From"}
            fields.append((known.get(found[1], found[1]), found[2]))
    if not any(key == "Subject" for key, _ in fields):
        first = next((line for line in lines if line.strip()), "")
        fields.append(("Subject", first or where))
        body = body.replace(first, "", 1) if first else body
    return _cleaned(fields, body, diff)


def from_commit(data: bytes, diff: bytes) -> Brought:
    """A commit object's content (git's own format) and its diff."""
    head, _, message = data.partition(b"\n\n")
    author = next(line for line in head.split(b"\n") if line.startswith(b"author "))
    person, when, zone = author[len(b"author ") :].rsplit(b" ", 2)
    encoding = next(
        (
            line[9:].decode("ascii", "replace")
            for line in head.split(b"\n")
            if line.startswith(b"encoding ")
        ),
        "",
    )
    text = _text(message, encoding)
    title, _, body = text.strip("\n").partition("\n\n")
    body, trailers = _trailers(body)
    fields = [
        ("From", _text(person, encoding)),
        ("Date", headers.mail_date(int(when), zone.decode())),
        ("Subject", " ".join(title.split("\n"))),
    ]
    return _cleaned([*fields, *trailers], body, diff)


def _text(data: bytes, encoding: str) -> str:
    if encoding:
        try:
            return data.decode(encoding)
        except (LookupError, ValueError):
            pass
    return data.decode("utf-8", "surrogateescape")


def _parts(text: bytes, where: str) -> tuple[str, bytes]:
    """Body and diff: the diff starts at its first header behind the body's `---`, if any."""
    cut = re.search(rb"^---\r?\n", text, re.MULTILINE)
    found = _DIFF.search(text, cut.end() if cut else 0) or _DIFF.search(text)
    if not found:
        raise PatchqError(f"{where} holds no diff", "name a patch file, an mbox or a quilt folder")
    body = text[: cut.start() if cut and cut.start() < found.start() else found.start()]
    diff = _SIGNATURE.sub(b"\n", text[found.start() :])
    return body.decode("utf-8", "surrogateescape").replace("\r\n", "\n"), diff


def _decoded(message: Message, name: str) -> str:
    """A header's text: encoded words (RFC 2047) decoded, other bytes taken for UTF-8."""
    raw = next((str(text) for key, text in message.raw_items() if key.lower() == name.lower()), "")
    text = raw.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
    return _WORDS.sub(_words, re.sub(r"\r?\n[ \t]+", " ", text))


def _words(found: re.Match[str]) -> str:
    try:
        return "".join(
            part if isinstance(part, str) else part.decode(charset or "utf-8", "surrogateescape")
            for part, charset in decode_header(found[0])
        )
    except (LookupError, ValueError, MessageError):
        return found[0]


def _trailers(body: str) -> tuple[str, list[tuple[str, str]]]:
    """Our own fields out of the last paragraph, as `export` writes them there."""
    lines = body.rstrip("\n").split("\n")
    start = len(lines)
    while start and lines[start - 1].strip():
        start -= 1
    found = [match for line in lines[start:] if (match := _TRAILER.match(line))]
    rest = lines[:start] + [line for line in lines[start:] if not _TRAILER.match(line)]
    return "\n".join(rest), [(match[1], match[2]) for match in found]


def _own_trailers(body: str, count: int) -> tuple[str, list[tuple[str, str]]]:
    """The text and the fields as `mail` wrote them."""
    lines = body.rstrip("\n").split("\n")
    cut = max(0, len(lines) - count)
    found = [line.partition(": ") for line in lines[cut:]]
    text = "\n".join(lines[:cut]).encode("utf-8", "surrogateescape")
    return headers.unescape(text).decode("utf-8", "surrogateescape"), [
        (key, value) for key, _, value in found
    ]


def mail(patch: Patch, place: int, count: int) -> bytes:
    """A patch as a mail of an mbox, for `git am --keep-cr --keep-non-patch` (RFC 5322, 2047).

    Fields that a mail does not have become trailers. It is number `place` of `count`.
    """
    header = patch.header
    known = ("from", "date", "subject")
    trailers = [f"{key}: {value}" for key, value in header.fields if key.lower() not in known]
    head = [
        "From " + "0" * 40 + " Mon Sep 17 00:00:00 2001",
        f"From: {_encoded(header.get('From') or 'unknown <>')}",
        f"Date: {header.get('Date') or headers.mail_date(0, '+0000')}",
        f"Subject: [PATCH {place}/{count}] {_encoded(header.subject)}",
        "MIME-Version: 1.0",
        "Content-Type: text/plain; charset=UTF-8",
        "Content-Transfer-Encoding: 8bit",
        f"{_OURS}: {len(trailers)}",
        "",
    ]
    text = headers.escape(header.body.encode("utf-8", "surrogateescape"))
    told = "\n".join(trailers).encode("utf-8", "surrogateescape")
    parts = [part for part in (text, told) if part]
    start = "\n".join([*head, ""]).encode("utf-8", "surrogateescape")
    return start + b"\n\n".join(parts) + b"\n---\n" + patch.diff + b"\n"


def _encoded(value: str) -> str:
    """A header's text: encoded words where it is not plain, or looks like one."""
    if value.isascii() and "=?" not in value:
        return value
    from base64 import b64encode

    name, bracket, address = value.partition(" <") if value.endswith(">") else (value, "", "")
    chunks: list[bytes] = [b""]
    for letter in name:
        data = letter.encode("utf-8", "surrogateescape")
        if len(chunks[-1]) + len(data) > _WORD_BYTES:
            chunks.append(b"")
        chunks[-1] += data
    words = [f"=?UTF-8?B?{b64encode(chunk).decode()}?=" for chunk in chunks]
    return "\n ".join(words) + bracket + address


def _cleaned(fields: list[tuple[str, str]], body: str, diff: bytes) -> Brought:
    left_out = tuple(f"{key}: {value}" for key, value in fields if key in DANGEROUS)
    name = next((value for key, value in fields if key == "Patchq-Name"), "")
    kept = [(k, v) for k, v in fields if k not in (*DANGEROUS, "Patchq-Name") and v]
    known = {value.partition(" ")[0] for key, value in kept if key == "Patchq-Pr"}
    kept += [("Patchq-Pr", pull) for pull in _pulls(kept, body) if pull not in known]
    return Brought(headers.make(kept, body), diff, name, left_out)


def _pulls(fields: list[tuple[str, str]], body: str) -> Iterator[str]:
    """OWNER/REPO#N of the pull requests that `Origin:` lines name."""
    lines = [value for key, value in fields if key == "Origin"]
    lines += [line for line in body.split("\n") if line.startswith("Origin:")]
    for found in dict.fromkeys(match for line in lines for match in _PULL.findall(line)):
        yield f"{found[0]}#{found[1]}"
