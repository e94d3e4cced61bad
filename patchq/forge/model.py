"""What a forge says of pull requests, whatever means it was asked by."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from patchq.errors import PatchqError

State = Literal["open", "closed", "merged", "unknown"]
Means = Literal["graphql", "rest", "git"]

_OWNER = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})"
_NAME = r"(?!\.{1,2}(?:[/#]|$))[A-Za-z0-9._-]{1,100}"
_REPO = re.compile(rf"{_OWNER}/{_NAME}")
_SHORT = re.compile(rf"({_OWNER}/{_NAME})?#([1-9][0-9]{{0,8}})|([1-9][0-9]{{0,8}})")
_ADDRESS = re.compile(rf"https?://[^/\s]+/({_OWNER}/{_NAME})/pull/([1-9][0-9]{{0,8}})(?:[/?#].*)?")


@dataclass(frozen=True)
class PullRequest:
    """A pull request as it was last seen. A fact that the means cannot know is empty or None.

    Texts are harmless to show: control characters and direction marks came in escaped. Dates are
    ISO 8601 in UTC with seconds, as GitHub writes them. Ids of commits are 40 hexadecimal digits.
    """

    repo: str
    """OWNER/REPO of the repository that it asks to be taken into."""
    number: int
    title: str = ""
    author: str = ""
    state: State = "unknown"
    draft: bool = False
    base: str = ""
    """The branch that it asks to be taken into."""
    former_bases: tuple[str, ...] = ()
    head_sha: str = ""
    forced_at: str | None = None
    """When its head was last exchanged by a force push."""
    merge_sha: str | None = None
    """The commit that brought it in; only of a merged one (GitHub also names test merges)."""
    created_at: str | None = None
    updated_at: str | None = None
    merged_at: str | None = None
    closed_at: str | None = None
    closed_by: str | None = None
    """What closed it without merging: a commit, or `#N`, a pull request of this repository."""
    labels: tuple[str, ...] = ()
    commits: int | None = None
    files: tuple[str, ...] = ()
    replaces: tuple[int, ...] = ()
    """Pull requests of this repository that its text says it replaces."""
    replaced_by: tuple[int, ...] = ()
    """Those whose text says that they replace it, or of which it was marked a duplicate."""
    reverts: tuple[int, ...] = ()
    """Those that its title or text says it takes back."""
    reverted_by: tuple[int, ...] = ()
    mentioned_by: tuple[int, ...] = ()
    """All pull requests of this repository that point to it."""
    means: Means = "graphql"

    @property
    def key(self) -> str:
        return f"{self.repo}#{self.number}"


@dataclass(frozen=True)
class Seen:
    """What one look at a forge brought; what is missing is said, and does not stop the rest.

    `pulls` and `bodies` (texts as their authors wrote them: hostile) are by OWNER/REPO#N.
    `missing` are sentences; where there are any, the command ends with exit status 6.
    """

    pulls: Mapping[str, PullRequest]
    missing: tuple[str, ...] = ()
    as_of: datetime = field(default_factory=lambda: datetime.now(UTC))
    means: Means = "graphql"
    bodies: Mapping[str, str] = field(default_factory=dict, repr=False)


def parse_key(text: str, repo: str | None = None) -> tuple[str, int]:
    """OWNER/REPO and number of `OWNER/REPO#N`, or of a pull request's address.

    `#N` and `N` alone mean the repository `repo`, where one is given.
    Raises PatchqError for anything else.
    """
    if found := _ADDRESS.fullmatch(text):
        return found[1], int(found[2])
    if found := _SHORT.fullmatch(text):
        where = found[1] or repo
        if where:
            return where, int(found[2] or found[3])
    raise PatchqError(f"{text[:100]!r} names no pull request", "write OWNER/REPO#N, or its address")


def require_repo(text: str) -> str:
    """`text`, where it is OWNER/REPO; raises PatchqError otherwise."""
    if _REPO.fullmatch(text):
        return text
    raise PatchqError(f"{text[:100]!r} is no repository of a forge", "write OWNER/REPO")
