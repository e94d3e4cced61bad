"""What a release is here: a commit of the store, whatever brought it there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from patchq.gitstore.store import Store


@dataclass(frozen=True)
class Release:
    """A release in the store. `facts` is what is recorded of it (archive, sha256, commit, ...)."""

    name: str
    commit: str
    tree: str
    facts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class AsOf:
    """How much was seen of upstream: since when, and whether all that was wanted was reached.

    `notes` are sentences about the releases that were asked for (that one was yanked, say).
    """

    source: str
    when: datetime
    complete: bool = True
    history: bool = False
    notes: tuple[str, ...] = ()


class Upstream(Protocol):
    """Releases by name, brought into a store."""

    @property
    def store(self) -> Store: ...

    @property
    def names_are_fixed(self) -> bool:
        """Whether a name means the same release for ever (versions do, branches do not)."""

    def latest(self) -> str:
        """The name of the newest release that is no pre-release and not yanked."""

    def release(self, name: str, *, commit: str | None = None) -> Release:
        """The release `name` in the store, brought there where it is not.

        `commit` is the one recorded for it, where it is known: git tags can move.
        Raises PatchqError for an unknown release.
        """

    def as_of(self) -> AsOf: ...

    def close(self) -> None: ...
