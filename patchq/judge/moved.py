"""Where upstream's commits moved the files of a patch, so that a landing is known there as well.

A move is a commit that takes a file away and adds the very same content at one other path. How
alike two files are is not asked here: between two releases it is (`carry.renames`), where both may
have changed too much to be known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from patchq.gitstore.log import Commit
from patchq.gitstore.store import Change
from patchq.judge.change import EMPTY


def moved(commits: Iterable[Commit], paths: Collection[bytes]) -> dict[bytes, bytes]:
    """The later names of `paths`, each with its first one; `commits` are oldest first.

    A name that several of them had, one after the other, tells nothing and is left out.
    """
    found: dict[bytes, set[bytes]] = {}
    for commit in commits:
        for each in commit.changes:
            if each.status == "D" and (each.path in paths or each.path in found):
                target = _target(each, commit.changes)
                if target and target not in paths:
                    found.setdefault(target, set()).update(found.get(each.path, {each.path}))
    return {name: first for name, (first, *more) in found.items() if not more}


def _target(gone: Change, changes: Sequence[Change]) -> bytes:
    """The one path to which a commit moved a file; b"" where there is none, or a choice."""
    olds = [c for c in changes if c.status == "D" and c.old_oid == gone.old_oid]
    news = [c for c in changes if c.status == "A" and c.new_oid == gone.old_oid]
    if gone.old_oid == EMPTY or len(olds) != 1 or len(news) != 1:
        return b""
    return news[0].path
