"""What the texts of pull requests say about other pull requests.

Texts are hostile: nothing is taken from comments, quotations and code, and only numbers come out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SILENT = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|^ {0,3}(```+|~~~+).*?(?:^ {0,3}\1|\Z)"
    r"|`[^`\n]*`"
    r"|^ {0,3}>.*?$"
    r"|^(?: {4}|\t).*?$",
    re.DOTALL | re.MULTILINE,
)
_REF = r"(?:[\w.-]+/[\w.-]+)?#\d+\b|https?://\S+?/pull/\d+\b"
_LIST = rf"(?:{_REF})(?:\s*(?:,|and|&|\+)\s*(?:{_REF}))*"
_NOUN = r"(?:\s*:)?\s+(?:(?:the\s+)?(?:PRs?|pull\s+requests?)\s+)?"
_REPLACES = re.compile(
    rf"\b(?:supersed(?:es?|ing)|replac(?:es?|ing|ement\s+(?:for|of))|takes?\s+over){_NOUN}({_LIST})",
    re.IGNORECASE,
)
_REPLACED = re.compile(
    rf"\b(?:superseded|replaced|obsoleted)\s+by{_NOUN}({_LIST})"
    rf"|\bin\s+favou?r\s+of{_NOUN}({_LIST})",
    re.IGNORECASE,
)
_REVERTS = re.compile(rf"^\s*(?:this\s+)?reverts?{_NOUN}({_LIST})", re.IGNORECASE | re.MULTILINE)
_REVERT_TITLE = re.compile(
    r"^(?:\[[^\]]*\]\s*)*reverts?:?\s+(?:[\"'“].*\(#(\d+)\)[\"'”]|(?:PR\s+)?#(\d+))", re.IGNORECASE
)
"""The last number within the quotation: of a revert of a revert, the one that is taken back."""
_ONE = re.compile(r"(?:(?P<repo>[\w.-]+/[\w.-]+))?#(?P<number>\d{1,9})\b")
_URL = re.compile(r"https?://[^/\s]+/(?P<repo>[\w.-]+/[\w.-]+)/pull/(?P<number>\d{1,9})\b")


@dataclass(frozen=True)
class Relations:
    """Numbers of the same repository, sorted."""

    replaces: tuple[int, ...] = ()
    replaced_by: tuple[int, ...] = ()
    reverts: tuple[int, ...] = ()


def relations(repo: str, number: int, title: str, body: str) -> Relations:
    """What the title and text of pull request `number` of `repo` say of others."""
    text = _SILENT.sub("\n", body[:100_000].replace("\r\n", "\n"))

    def found(pattern: re.Pattern[str]) -> tuple[int, ...]:
        lists = [part for match in pattern.finditer(text) for part in match.groups() if part]
        return _numbers(repo, " ".join(lists), number)

    reverts = set(found(_REVERTS))
    if in_title := _REVERT_TITLE.match(title[:500]):
        reverts |= {int(in_title[1] or in_title[2])} - {number}
    return Relations(found(_REPLACES), found(_REPLACED), tuple(sorted(reverts)))


def _numbers(repo: str, text: str, itself: int) -> tuple[int, ...]:
    numbers = set()
    for match in (*_URL.finditer(text), *_ONE.finditer(_URL.sub(" ", text))):
        if (match["repo"] or repo).lower() == repo.lower():
            numbers.add(int(match["number"]))
    return tuple(sorted(numbers - {itself, 0}))
