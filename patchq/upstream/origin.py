"""Who promises what is downloaded, in the words of messages, and what goes along with requests."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from patchq.errors import PatchqError


@dataclass(frozen=True)
class Origin:
    """`room`: where else files may lie. `headers` go with each request; they may hold a token."""

    who: str = "the index"
    room: str = "set PATCHQ_CACHE to another folder"
    refused: str = "run it again with a fresh list of releases; check pip's configuration"
    wrong: str = "do not use it; run it again later, and tell those who run the index"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


INDEX = Origin()


@contextmanager
def stored(name: str, folder: Path, origin: Origin) -> Iterator[None]:
    """What the system refuses about the file `name`, in a sentence: a PatchqError."""
    try:
        yield
    except OSError as error:
        what = f"cannot be stored in {folder}: {error.strerror or error}"
        remedy = "check the folder"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            what, remedy = f"does not fit into {folder}: the disk is full", "free some space"
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            what = f"cannot be written to {folder}: {error.strerror}"
            remedy = "correct the folder's permissions"
        raise PatchqError(f"{name} {what}", f"{remedy}, or {origin.room}") from error
