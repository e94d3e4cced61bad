"""What is said of a move, and where to read more. Titles are other people's words: data, on one
line, with nothing in it that a terminal would obey.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from patchq.paths import show
from patchq.queue import header as headers
from patchq.queue.header import one_line
from patchq.queue.series import RETIRED

if TYPE_CHECKING:
    from patchq.bisect.ends import End
    from patchq.bisect.stacking import Base, Slot

GITHUB = "https://github.com"
LANDED = ("landed", "landed-with-changes", "superseded", "updated")
_PULL = re.compile(r"([A-Za-z0-9-]+/[A-Za-z0-9_.-]+)#([1-9][0-9]*)")
_SHA = re.compile(r"[0-9a-f]{7,40}")


def text(words: str) -> str:
    return show(one_line(words))


def patch(a: End, b: End, slot: Slot) -> str:
    """What became of a patch from A to B."""
    version = slot.b or slot.a
    assert version is not None
    subject = text(version.patch.header.subject or "")
    name = slot.name
    if slot.a is not None and slot.b is not None:
        return f"patch {name} written anew: {subject}"
    if slot.a is None:
        again = name in a.queue.series.held
        return f"patch {name} {'applied again' if again else 'added'}: {subject}"
    name = slot.a.patch.name
    if name in b.queue.series.held:
        return f"patch {name} held ({text(b.queue.series.held[name])}): {subject}"
    why = dropped(b, slot)
    return f"patch {name} taken out{f' ({text(why)})' if why else ''}: {subject}"


def dropped(b: End, slot: Slot) -> str:
    """What the sync that dropped the patch wrote of it ("landed in 0.32.0"); "" where none did."""
    if slot.a is None or slot.b is not None:
        return ""
    path = f"{b.queue.config.series}/{RETIRED}/{slot.a.patch.file}"
    if (data := b.files.get(path)) is None:
        return ""
    header, _ = headers.parse(data, path)
    return header.get("Patchq-Dropped") or ""


def landed(b: End, slot: Slot) -> bool:
    """Whether a sync dropped the patch because the base has it, or something in its place."""
    return dropped(b, slot).partition(" in ")[0] in LANDED


def patch_url(b: End, slot: Slot) -> str | None:
    """The pull request that the patch is from, where there is one on GitHub."""
    version = slot.b or slot.a
    assert version is not None
    if b.queue.config.github_api is not None:
        return None
    for value in version.patch.header.all("Patchq-Pr"):
        if found := _PULL.match(value):
            return f"{GITHUB}/{found[1]}/pull/{found[2]}"
    return None


def commit(oid: str, subject: str, author: str) -> str:
    return f"upstream's {oid[:12]}: {text(subject)}, by {text(author)}"


def commit_url(end: End, oid: str) -> str | None:
    config = end.queue.config
    if config.github is None or config.github_api is not None or not _SHA.fullmatch(oid):
        return None
    return f"{GITHUB}/{config.github}/commit/{oid}"


def base_url(end: End, base: Base) -> str | None:
    """Where the commit of a release can be read: an archive says it, in git it is it."""
    facts = dict(base.facts)
    if "archive" in facts:
        return commit_url(end, facts.get("upstream-commit", ""))
    return commit_url(end, base.commit)
