"""The header and body of a patch file (design: on-disk forms).

A header is one line a field, never folded: quilt applies a folded value that holds a diff.
The body is never a diff to anyone: lines that some applier takes for the start of one get
one more leading `~`, and lose it when they are read.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

from patchq.errors import PatchqError

ORDER = (
    "From",
    "Date",
    "Subject",
    "Origin",
    "Upstream-Status",
    "Patchq-Name",
    "Patchq-Pr",
    "Patchq-Topic",
    "Patchq-Relaxes",
    "Patchq-Drop-When",
    "Patchq-Check",
)
_DIFF_LIKE = (
    rb"[ \tX]*(?:- )*(?:---|\+\+\+ |\*\*\*|@@ -|diff -|Index:|Prereq:|>?From[ :]|Subject:|Date:"
    rb"|\[PATCH|-- >8|(?i:From|Subject|Date):)"
)
_TO_ESCAPE = re.compile(rb"^~*" + _DIFF_LIKE)
_ESCAPED = re.compile(rb"^~+" + _DIFF_LIKE)
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_OWN_DATE = re.compile(
    r"[A-Z][a-z]{2}, (\d{1,2}) ([A-Z][a-z]{2}) (\d{4}) (\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)"
)
"""The form that `mail_date` writes; others are left to the email package, which loads slowly."""
_ZONE = re.compile(r"[+-](?:[01][0-9]|2[0-3])[0-5][0-9]")
_FIELD = re.compile(r"^([A-Za-z][A-Za-z0-9-]*):[ \t]*(.*)$")


@dataclass(frozen=True)
class Header:
    """The fields in the order of the file (unknown ones are kept) and the body's text.

    Texts are UTF-8 with surrogateescape: other bytes come back as they were.
    """

    fields: tuple[tuple[str, str], ...]
    body: str = ""

    def get(self, name: str) -> str:
        """The first value of a field, or an empty text."""
        return next((value for key, value in self.fields if key.lower() == name.lower()), "")

    def all(self, name: str) -> tuple[str, ...]:
        return tuple(value for key, value in self.fields if key.lower() == name.lower())

    @property
    def subject(self) -> str:
        return self.get("Subject")

    @property
    def checks(self) -> tuple[str, ...]:
        return self.all("Patchq-Check")

    def replace(self, name: str, *values: str) -> Header:
        """The same header with all values of a field exchanged (none: removed)."""
        rest = [field for field in self.fields if field[0].lower() != name.lower()]
        fields = rest + [(name, one_line(value)) for value in values]
        return Header(_sorted(fields), self.body)


def make(fields: list[tuple[str, str]], body: str) -> Header:
    """A header in canonical order; values are made one line, the body is trimmed.

    A body loses its NUL bytes: git takes no message with them.
    """
    one_lined = [(key, one_line(value)) for key, value in fields]
    return Header(_sorted(one_lined), tidy(body.replace("\0", "")))


def one_line(value: str) -> str:
    """`value` without line breaks, which would start another field."""
    return " ".join(part for part in re.split(r"[\r\n\x0b\x0c\x00]+", value)).strip()


def tidy(body: str) -> str:
    """Without leading and trailing empty lines, as git keeps messages."""
    lines = body.split("\n")
    while lines and not lines[0].strip():
        del lines[0]
    while lines and not lines[-1].strip():
        del lines[-1]
    return "\n".join(lines)


def _sorted(fields: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    rank = {name.lower(): place for place, name in enumerate(ORDER)}
    return tuple(sorted(fields, key=lambda field: rank.get(field[0].lower(), len(ORDER))))


def parse(text: bytes, where: str) -> tuple[Header, bytes]:
    """The header of a patch file, and the diff behind its `---` line.

    Raises PatchqError for a line that is no field, or where the `---` is missing.
    """
    lines = text.split(b"\n")
    fields: list[tuple[str, str]] = []
    at = 0
    while at < len(lines) and lines[at] not in (b"", b"---"):
        line = lines[at].decode("utf-8", "surrogateescape")
        found = _FIELD.match(line)
        if not found:
            raise PatchqError(
                f"{where}:{at + 1} is not a header field (`Name: value`)",
                "correct the header, or bring the patch in with `patchq import`",
            )
        fields.append((found[1], found[2]))
        at += 1
    try:
        end = lines.index(b"---", at)
    except ValueError:
        raise PatchqError(
            f"{where} has no `---` line between its text and its diff",
            "add the line, or bring the patch in with `patchq import`",
        ) from None
    body = unescape(b"\n".join(lines[at:end]))
    header = Header(tuple(fields), tidy(body.decode("utf-8", "surrogateescape")))
    return header, b"\n".join(lines[end + 1 :])


def format(header: Header) -> bytes:
    """The bytes of a header up to and with the `---` line."""
    out = [
        f"{key}: {value}".rstrip().encode("utf-8", "surrogateescape")
        for key, value in header.fields
    ]
    out.append(b"")
    if header.body:
        out.append(escape(header.body.encode("utf-8", "surrogateescape")))
    return b"\n".join([*out, b"---", b""])


def escape(body: bytes) -> bytes:
    """A text that no applier takes for a diff or a mail's header."""
    lines = body.split(b"\n")
    return b"\n".join(b"~" + line if _TO_ESCAPE.match(line) else line for line in lines)


def unescape(body: bytes) -> bytes:
    """The text that `escape` was given."""
    lines = body.split(b"\n")
    return b"\n".join(line[1:] if _ESCAPED.match(line) else line for line in lines)


def person(value: str) -> tuple[str, str]:
    """Name and mail of `Name <mail>`."""
    name, _, rest = value.partition("<")
    return name.strip().strip('"') or "unknown", rest.partition(">")[0].strip()


def when(value: str, where: str) -> datetime:
    """A mail date (RFC 5322) with its zone.

    Raises PatchqError where it is none.
    """
    if (own := _OWN_DATE.fullmatch(value)) and own[2] in _MONTHS:
        day, year, hour, minute, second = (int(own[place]) for place in (1, 3, 4, 5, 6))
        offset = timedelta(hours=int(own[8]), minutes=int(own[9]))
        with suppress(ValueError):
            zone = timezone(-offset if own[7] == "-" else offset)
            return datetime(year, _MONTHS.index(own[2]) + 1, day, hour, minute, second, tzinfo=zone)
    from email.utils import parsedate_to_datetime

    try:
        found = parsedate_to_datetime(value)
    except (TypeError, ValueError, OverflowError):
        raise PatchqError(
            f"{where}: {value!r} is not a date", "write it as `Mon, 30 Nov 2026 12:00:00 +0000`"
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def mail_date(seconds: int, zone: str) -> str:
    """Seconds since the epoch and a zone ("+0200") as a mail date.

    A zone that is none is taken for UTC and a time out of all reason for the epoch: old commits
    hold both.
    """
    if not _ZONE.fullmatch(zone):
        zone = "+0000"
    minutes = int(zone[1:3]) * 60 + int(zone[3:5])
    delta = timezone(timedelta(minutes=-minutes if zone[0] == "-" else minutes))
    try:
        moment = datetime.fromtimestamp(seconds, delta)
    except (ValueError, OverflowError, OSError):
        moment = datetime.fromtimestamp(0, delta)
    # strftime's names follow the locale; the file must not.
    return (
        f"{_DAYS[moment.weekday()]}, {moment.day} {_MONTHS[moment.month - 1]} {moment.year}"
        f" {moment:%H:%M:%S} {zone}"
    )
