"""What a history says of a change: by the words of its reverts, and by lines alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

Lines = Mapping[bytes, Counter[bytes]]
"""Of each file (the head of its diff, whether it comes or goes) the lines that are added and removed,
with their signs.
"""
LONG = 8
"""Bytes of a line that does not stand everywhere."""
LOG = ("log", "--topo-order", "--reverse", "--format=%x00", "-p", "--diff-merges=first-parent")
DIFF = ("-U0", "--no-renames", "--no-color")

_OWN = re.compile(r"\(#(\d+)\)\s*$|^Merge pull request #(\d+) from ")
_REVERT = re.compile(r"revert|back ?out", re.I)


@dataclass(frozen=True)
class Commit:
    id: str
    parents: tuple[str, ...]
    subject: str
    body: str

    @property
    def number(self) -> int | None:
        found = _OWN.search(self.subject)
        return int(found[1] or found[2]) if found else None


def reverted(inside: Sequence[Commit], ids: Mapping[str, str]) -> set[str]:
    """Commits of the range that a later one of it takes back, and none brings again.

    `ids`: the patch id of each, merges against their first parent.
    """
    order = {each.id: place for place, each in enumerate(inside)}
    gone: dict[str, str] = {}
    for each in inside:
        if _REVERT.search(each.subject) and 'Revert "Revert' not in each.subject:
            for target in _targets(each, inside, order):
                gone[target] = each.id
    # Brought again: by a commit whose change is that of the one taken back.
    last = {ids[oid]: place for oid, place in order.items() if oid in ids}
    return {
        target
        for target, revert in gone.items()
        if target not in ids or last[ids[target]] < order[revert]
    }


def _targets(each: Commit, inside: Sequence[Commit], order: Mapping[str, int]) -> Iterator[str]:
    """The commits that a revert names: by number, by id or by title."""
    named = {int(n) for n in re.findall(r"#(\d+)|PR (?=\d)", each.subject) if n}
    named |= {int(n) for n in re.findall(r"\bPR (\d+)", each.subject)}
    named |= {int(n) for n in re.findall(r"^Reverts \S*#(\d+)", each.body, re.M)}
    named -= {each.number or 0}
    ids = re.findall(r"This reverts commit ([0-9a-f]{7,40})", each.body)
    quoted = re.match(r'Revert "(.*)"', each.subject)
    for other in inside:
        if order[other.id] >= order[each.id]:
            continue
        plain = re.sub(r"\s*\(#\d+\)$", "", other.subject)
        if (
            other.number in named
            or any(other.id.startswith(oid) for oid in ids)
            or (quoted and re.sub(r"\s*\(#\d+\)$", "", quoted[1]) == plain)
        ):
            yield other.id


def lines(diff: bytes) -> Lines:
    """The lines of a diff without context; blank ones and blanks at the end do not count."""
    found: dict[bytes, Counter[bytes]] = {}
    head, inside = b"", False
    for line in diff.split(b"\n"):
        if line.startswith(b"diff --git "):
            head, inside = line, False
            found[head] = Counter()
        elif not inside and line.startswith((b"new file ", b"deleted file ")):
            found[head + line] = found.pop(head)
            head += line
        elif line.startswith(b"@@ "):
            inside = True
        elif inside and line[:1] in (b"+", b"-") and line[1:].strip():
            found[head][line.rstrip()] += 1
    return found


def stands(mine: Lines, log: Iterable[bytes]) -> bool | None:
    """Whether the last commit that is about the whole of a change makes it; None without one.

    `log` are the diffs of commits, the oldest first. A commit makes a change where it makes every
    line of it, in the very file, and takes it back where it does the opposite; a release that takes
    the notes of its changes away does not. A change of which no line is long tells nothing, nor
    does one of modes or of binary files.
    """
    if not all(mine.values()) or not any(
        len(line) > LONG for each in mine.values() for line in each
    ):
        return None
    back = {
        head: Counter({_opposite(line): n for line, n in its.items()}) for head, its in mine.items()
    }
    last = None
    for diff in log:
        theirs = lines(diff)
        if _holds(theirs, mine):
            last = True
        elif _holds(theirs, back):
            last = False
    return last


def _holds(theirs: Lines, mine: Lines) -> bool:
    return all(head in theirs and its <= theirs[head] for head, its in mine.items())


def _opposite(line: bytes) -> bytes:
    return (b"-" if line[:1] == b"+" else b"+") + line[1:]
