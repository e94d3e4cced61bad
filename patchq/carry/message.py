"""The commit that stands for a patch: its message, and who made it when."""

from __future__ import annotations

from patchq.gitstore.fastimport import Ident
from patchq.queue.patch import Patch


def message(patch: Patch) -> bytes:
    """The commit message that stands for a patch: subject, body, our fields as trailers."""
    header = patch.header
    parts = [header.subject or patch.name]
    if header.body:
        parts.append(header.body)
    trailers = [
        f"{key}: {value}" for key, value in header.fields if key not in ("From", "Date", "Subject")
    ]
    if trailers:
        parts.append("\n".join(trailers))
    return ("\n\n".join(parts) + "\n").encode("utf-8", "surrogateescape")


def ident(patch: Patch) -> Ident:
    """Author and committer of that commit: the patch's own, so that ids are stable."""
    name, mail = patch.author
    moment = patch.date
    return Ident(
        name.encode("utf-8", "surrogateescape"),
        mail.encode("utf-8", "surrogateescape"),
        int(moment.timestamp()),
        f"{moment:%z}"[:5],
    )
