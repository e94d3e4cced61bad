"""What a commit's words say of itself: its pull request, what it takes back, brings again or picks.

The words are strangers' habits: `(#N)` ends the subject of a squash merge, bots write
`Pull Request resolved:`, `git revert` and `git cherry-pick -x` leave their sentences.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from patchq.gitstore.log import Commit

_OWN = re.compile(r"\(#(\d+)\)\s*$")
_MERGED = re.compile(r"^Merge pull request #(\d+) from ")
_RESOLVED = re.compile(r"^Pull[ -]Request[ -]resolved:\s*\S+/pull/(\d+)\s*$", re.M | re.I)
_KIND = re.compile(r"^\s*(?:\[[^\]]*\]\s*|[\w/-]+(?:\([^)]*\))?!?:\s+)+")
_NUMBER = re.compile(r"(?:(?<![\w&])#|\bPR[ #]+)(\d+)\b")
_PICKED = re.compile(r"cherry[- ]picked from commit ([0-9a-f]{7,40})", re.I)
_TAKES_BACK = re.compile(r"\brevert(?:s|ed|ing)?\b|\bback(?:s|ed|ing)? ?out\b|\bundo\b", re.I)
_BRINGS_AGAIN = re.compile(r"\bre-?land(?:s|ed|ing)?\b|\bre-?appl(?:y|ies|ied)\b", re.I)
_REVERTS_SHA = re.compile(r"\breverts? commit ([0-9a-f]{7,40})\b", re.I)
_REVERTS_NUMBER = re.compile(r"^(?:This )?reverts? (?:[\w.-]+/[\w.-]+)?#(\d+)", re.M | re.I)
_QUOTED = re.compile(r'^\s*(?:\[[^\]]*\]\s*)*(?:Reapply|Revert) "(.*)"', re.I | re.S)


@dataclass(frozen=True)
class Told:
    """A commit and what its words say. Numbers are of upstream's own pull requests."""

    commit: Commit

    @property
    def id(self) -> str:
        return self.commit.id

    @property
    def is_merge(self) -> bool:
        return len(self.commit.parents) > 1

    @cached_property
    def own(self) -> int | None:
        """The pull request that the commit is."""
        subject = self.commit.subject
        found = _MERGED.match(subject) or _OWN.search(subject) or _RESOLVED.search(self.commit.body)
        return int(found[1]) if found else None

    @cached_property
    def others(self) -> tuple[int, ...]:
        """The other numbers of the subject: picked, taken back or brought again."""
        found = (int(number) for number in _NUMBER.findall(self.commit.subject))
        return tuple(dict.fromkeys(number for number in found if number != self.own))

    @cached_property
    def picked(self) -> tuple[str, ...]:
        """The (perhaps abbreviated) commits that it says it was picked from."""
        body = self.commit.body
        return tuple(_PICKED.findall(body)) if "icked from" in body else ()

    @cached_property
    def is_revert(self) -> bool:
        return bool(_TAKES_BACK.search(self.commit.subject)) and not self.is_again

    @cached_property
    def is_again(self) -> bool:
        """A revert of a revert is one as well."""
        subject = self.commit.subject
        quoted = _QUOTED.match(subject)
        if quoted and re.match(r"\s*Revert\b", quoted[1], re.I):
            return subject.lstrip().lower().startswith("revert")
        return bool(_BRINGS_AGAIN.search(subject))

    @cached_property
    def reverted_ids(self) -> tuple[str, ...]:
        body = self.commit.body
        return tuple(_REVERTS_SHA.findall(body)) if "evert" in body else ()

    @cached_property
    def reverted(self) -> frozenset[int]:
        """The pull requests that it says it takes back."""
        named = {int(number) for number in _REVERTS_NUMBER.findall(self.commit.body)}
        if self.is_revert:
            named |= set(self.others)
        elif self.is_again and self.others:
            # `Revert "Revert "title (#1)" (#2)"`: the outermost is taken back, the inner comes.
            named |= set(self.others[1:][-1:])
        return frozenset(named)

    @cached_property
    def reverted_title(self) -> str:
        """The title that stands in `Revert "title"`."""
        found = _QUOTED.match(self.commit.subject) if self.is_revert else None
        return title(found[1]) if found else ""

    @cached_property
    def again(self) -> frozenset[int]:
        """The pull requests that it says it brings again."""
        return frozenset(self.others[:1]) if self.is_again else frozenset()

    @cached_property
    def title(self) -> str:
        return title(self.commit.subject)


def title(subject: str) -> str:
    """A subject without its kind (`fix(jit):`, `[Bugfix]`), numbers and blanks, for comparing."""
    plain = _NUMBER.sub("", _KIND.sub("", subject)).replace("()", "")
    return re.sub(r"\s+", " ", plain).strip().lower()


def numbers(subject: str) -> tuple[int, ...]:
    """The pull requests whose change a subject says it is: `title (#1)`, picked as `(#1) (#2)`."""
    if _TAKES_BACK.search(subject):
        found = _OWN.search(subject)
        return (int(found[1]),) if found else ()
    tail = re.search(r"(?:\s*\(#\d+\))+\s*$", subject)
    return tuple(int(number) for number in _NUMBER.findall(tail[0])) if tail else ()


def mainline(told: list[Told]) -> list[Told]:
    """`told` without merges, but for those of pull requests, which stand for all they brought."""
    by_id: Mapping[str, Told] = {each.id: each for each in told}
    inside: set[str] = set()
    for each in told:
        if not each.is_merge or each.own is None:
            continue
        first = _ancestors(each.commit.parents[:1], by_id)
        inside |= _ancestors(each.commit.parents[1:], by_id) - first
    return [
        each
        for each in told
        if each.id not in inside and (not each.is_merge or each.own is not None)
    ]


def relevant(
    commits: Sequence[Commit], paths: Collection[bytes], numbers: Collection[int]
) -> list[Told]:
    """The commits whose lines are worth reading, oldest first.

    Those that touch one of `paths`, or a file of the same name elsewhere, or name a number.
    """
    names = {path.rpartition(b"/")[2] for path in paths} - COMMON_NAMES
    known = frozenset(paths)
    return [
        each
        for each in mainline([Told(commit) for commit in commits])
        if any(c.path in known or c.path.rpartition(b"/")[2] in names for c in each.commit.changes)
        or not {each.own, *each.others}.isdisjoint(numbers)
        or each.is_revert
    ]


COMMON_NAMES = frozenset(
    {b"__init__.py", b"README.md", b"CMakeLists.txt", b"utils.py", b"setup.py"}
)
"""Of which a repository has many: the same name means nothing."""


def _ancestors(starts: tuple[str, ...], by_id: Mapping[str, Told]) -> set[str]:
    found: set[str] = set()
    waiting = [each for each in starts if each in by_id]
    while waiting:
        oid = waiting.pop()
        if oid not in found:
            found.add(oid)
            waiting += [each for each in by_id[oid].commit.parents if each in by_id]
    return found
