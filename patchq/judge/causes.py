"""Which commit of a line made something bad: pure, the question is asked by the caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from patchq.gitstore.log import Commit

SCAN = 64
"""Steps that are taken back from the end where the line is not in order."""


def first_bad(
    count: int, is_bad: Callable[[int], bool], starts_bad: Callable[[], bool]
) -> int | None:
    """The place from which on it is bad, among `count`; None where the last one is not.

    `starts_bad`: whether it is bad before place 0 already, as on a release branch that has what
    the line did not have yet; then the last change from good to bad counts.
    """
    if not count or not is_bad(count - 1):
        return None
    low, high = -1, count - 1
    while high - low > 1:
        middle = (low + high) // 2
        if is_bad(middle):
            high = middle
        else:
            low = middle
    if high > 0 or not starts_bad():
        return high
    for place in range(count - 1, max(0, count - SCAN), -1):
        if not is_bad(place - 1):
            return place
    return 0


def line(commits: Mapping[str, Commit], tip: str) -> list[Commit]:
    """The first parents from `tip` back, as far as they are among `commits`; oldest first."""
    found: list[Commit] = []
    while tip in commits:
        found.append(commits[tip])
        parents = commits[tip].parents
        if not parents:
            break
        tip = parents[0]
    return found[::-1]


def touching(chain: Sequence[Commit], paths: Sequence[bytes]) -> list[Commit]:
    """The commits that change one of `paths`, or something below or above it."""
    below = tuple(path + b"/" for path in paths)
    wanted = {
        path[:end] for path in below for end in range(len(path)) if path[end : end + 1] == b"/"
    }
    return [
        each
        for each in chain
        if any(c.path in wanted or c.path.startswith(below) for c in each.changes)
    ]
