"""`edit` and `rename`: a patch's header and its name. Its diff stays as it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from patchq.carry.arrange import ChangeReport, Wish, opened, rearranged
from patchq.carry.workspace import Queue
from patchq.errors import PatchqError, UsageError
from patchq.paths import show
from patchq.progress import SILENT, Progress
from patchq.queue import header as headers
from patchq.queue import patch as patches
from patchq.queue.header import Header
from patchq.queue.patch import Patch
from patchq.queue.series import Line

_KEY = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
FIXED = ("Patchq-Name", "Patchq-Dropped", "Patchq-Evidence")
"""Fields that other commands write: `rename`, `sync`, `delete`."""


@dataclass(frozen=True)
class Edits:
    """What is to change in a header; `fields` are KEY, VALUE pairs, a key may come more than once.

    Another key's fields stay.
    """

    subject: str | None = None
    message: str | None = None
    fields: tuple[tuple[str, str], ...] = ()
    unset: tuple[str, ...] = ()


def pairs(given: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """`KEY=VALUE` texts as pairs. Raises UsageError for one that is none."""
    found = []
    for each in given:
        key, sign, value = each.partition("=")
        if not sign or not _KEY.fullmatch(key):
            raise UsageError(f"{each!r} is not KEY=VALUE", "write --set Upstream-Status=Submitted")
        found.append((key, value))
    return tuple(found)


def edited(header: Header, edits: Edits) -> Header:
    """The header with the edits made.

    Raises PatchqError for a field that is not there to be taken out, or is another command's.
    """
    fields = list(edits.fields)
    if edits.subject is not None:
        fields.append(("Subject", edits.subject))
    for key in edits.unset:
        if not header.all(key):
            raise PatchqError(f"there is no field {show(key)}", "see `patchq show`")
        header = header.replace(key)
    known = {name.lower(): name for name in (*headers.ORDER, *(key for key, _ in header.fields))}
    for key in dict.fromkeys(key.lower() for key, _ in fields):
        values = [value for name, value in fields if name.lower() == key]
        header = header.replace(
            known.get(key, next(n for n, _ in fields if n.lower() == key)), *values
        )
    if edits.message is None:
        return header
    return headers.make(list(header.fields), edits.message.replace("\r\n", "\n"))


def as_text(header: Header) -> str:
    """The header as it is edited: its fields, an empty line, its text as it is meant."""
    fields = "".join(f"{key}: {value}".rstrip() + "\n" for key, value in header.fields)
    return f"{fields}\n{header.body}\n" if header.body else f"{fields}\n"


def from_text(text: str, where: str) -> Header:
    """What an editor left.

    Raises PatchqError for an empty text or a line that is no field.
    """
    text = text.replace("\r\n", "\n")
    if not text.strip():
        raise PatchqError(f"{where} is empty", "write the header again; nothing was changed")
    fields, _, body = text.partition("\n\n")
    head = fields.lstrip("\n").encode("utf-8", "surrogateescape")
    found, _ = headers.parse(head.rstrip(b"\n") + b"\n\n---\n", where)
    return headers.make(list(found.fields), body)


def with_header(patch: Patch, header: Header) -> Patch:
    """The patch with another header.

    Raises PatchqError for one that a patch cannot have.
    """
    header = headers.make(list(header.fields), header.body)
    if not header.subject:
        raise PatchqError("the subject is empty", "a patch needs a line `Subject: ...`")
    for key in FIXED:
        if header.all(key) != patch.header.all(key):
            hint = "`patchq rename` changes a name" if key == "Patchq-Name" else "leave it as it is"
            raise PatchqError(f"{key} is not changed by `patchq edit`", hint)
    made = patch.with_header(header)
    if patches.parse(made.file, made.text).header != header:
        raise PatchqError("the header does not read back as it was written", "leave it plainer")
    headers.when(header.get("Date") or "Thu, 1 Jan 1970 00:00:00 +0000", "the header")
    return made


def edit(
    queue: Queue,
    name: str,
    edits: Edits | Header,
    *,
    was: Patch | None = None,
    dry_run: bool = False,
    progress: Progress = SILENT,
) -> ChangeReport:
    """Edit the patch's header, or give it another one. The caller holds the lock.

    `was` is the patch that the new header was typed for. Raises PatchqError where it is another
    one now.
    """
    patch = queue.series.find(name)
    if was is not None and patch.text != was.text:
        raise PatchqError(f"{patch.file} was changed meanwhile", "look at both")
    header = edited(patch.header, edits) if isinstance(edits, Edits) else edits
    return _exchange(queue, "edit", patch, with_header(patch, header), dry_run, progress)


def rename(
    queue: Queue, name: str, new: str, *, dry_run: bool = False, progress: Progress = SILENT
) -> ChangeReport:
    """Give the patch another name; its number stays.

    Raises PatchqError for a name that is in use, was once, or cannot be one.
    """
    patch = queue.series.find(name)
    if new == patch.name:
        raise PatchqError(f"it is called {new} already", "choose another name")
    if new in queue.series.names:
        raise PatchqError(f"there is or was a patch {new!r}", "choose another name")
    if not patches.FILE.match(patches.file_name(patch.number, new)):
        raise PatchqError(
            f"{new!r} cannot be a patch's name",
            f"use lower-case letters, digits and dashes: {patches.slug(new)}",
        )
    header = patch.header.replace("Patchq-Name", new)
    made = replace(patch.with_header(header), name=new)
    return _exchange(queue, "rename", patch, made, dry_run, progress)


def renumber(
    queue: Queue, *, progress: Progress = SILENT
) -> tuple[ChangeReport | None, tuple[tuple[str, str], ...]]:
    """Give the later of two patches with one number the next free one; the caller holds the lock.

    Also the old and new files. (None, ()) where every number is given once.
    """
    first = queue.series.next_number
    made = {
        patch.name: replace(patch, number=first + at)
        for at, (patch, _) in enumerate(queue.series.doubled)
    }
    if not made:
        return None, ()
    pairs = tuple((patch.file, made[patch.name].file) for patch, _ in queue.series.doubled)
    lines = tuple(
        _named(line, made[line.patch.name]) if line.patch and line.patch.name in made else line
        for line in queue.series.lines
    )
    summary = ", ".join(f"{old} is {new}" for old, new in pairs)
    with opened(queue, progress=progress) as bench:
        return rearranged(bench, Wish("check", "", summary, lines)), pairs


def _named(line: Line, new: Patch) -> Line:
    """The line of the series file with the patch as it is now."""
    assert line.patch is not None
    return Line(line.kind, line.text.replace(line.patch.file, new.file, 1), new, line.why)


def _exchange(
    queue: Queue, command: str, old: Patch, new: Patch, dry_run: bool, progress: Progress
) -> ChangeReport:
    lines = tuple(_named(line, new) if line.patch is old else line for line in queue.series.lines)
    summary = old.name if new.name == old.name else f"{old.name} is {new.name}"
    with opened(queue, progress=progress) as bench:
        changes = {new.name: bench.chain.changes.get(old.name, ())}
        wish = Wish(command, new.name, summary, lines, changes)
        return rearranged(bench, wish, dry_run=dry_run)
