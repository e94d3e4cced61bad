"""Where upstream's commits moved the files of a patch, so that a landing is known there as well.

A move is a commit that takes a file away and adds the very same content at one other path. How
alike two files are is not asked here: between two releases it is (`carry.renames`), where both may
have changed too much to be known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from patchq.gitstore.log import Commit
from patchq.gitstore.store import Change
from patchq.judge.change import EMPTY


def moved(commits: Iterable[Commit], paths: Collection[bytes]) -> dict[bytes, bytes]:
    """The later names of `paths`, each with its first one; `commits` are oldest first.

    A name tells nothing and is left out that several of them had, one after the other, or that was
    given up; and so does a file whose first name another one has by now.
    """
    found: dict[bytes, set[bytes]] = {}
    again, ended = set(), set()
    for commit in commits:
        for new in (each for each in commit.changes if each.status == "A"):
            if new.path in paths and not _back(new, commit.changes, found):
                again.add(new.path)
            if new.path in found:
                ended.add(new.path)
        for old in (each for each in commit.changes if each.status == "D"):
            if old.path not in paths and old.path not in found:
                continue
            target = _target(old, commit.changes)
            if not target:
                ended.add(old.path)
            elif target not in paths:
                found.setdefault(target, set()).update(found.get(old.path, {old.path}))
    return {
        name: first
        for name, (first, *more) in found.items()
        if not more and name not in ended and first not in again
    }


def _back(new: Change, changes: Sequence[Change], found: Mapping[bytes, Collection[bytes]]) -> bool:
    """Whether a file comes back to its first name."""
    return any(
        old.status == "D" and old.old_oid == new.new_oid and new.path in found.get(old.path, ())
        for old in changes
    )


def _target(gone: Change, changes: Sequence[Change]) -> bytes:
    """The one path to which a commit moved a file; b"" where there is none, or a choice."""
    olds = [c for c in changes if c.status == "D" and c.old_oid == gone.old_oid]
    news = [c for c in changes if c.status == "A" and c.new_oid == gone.old_oid]
    if gone.old_oid == EMPTY or len(olds) != 1 or len(news) != 1:
        return b""
    return news[0].path
