"""What a pull request says, as patches to be carried: its commits, its diff, its header."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from patchq.errors import PatchqError
from patchq.gitstore.store import Store
from patchq.paths import lossless, show
from patchq.queue import header as headers
from patchq.queue import mail
from patchq.queue import patch as patches
from patchq.queue.diff import same_path
from patchq.queue.header import Header
from patchq.queue.patch import Patch

EXCLUDE = "Patchq-Exclude"
_FILE = re.compile(rb"^diff --git (.*)\n", re.MULTILINE)


@dataclass(frozen=True)
class Span:
    """Commits of a store: what came after `base`, up to `head`."""

    base: str
    head: str


@dataclass(frozen=True)
class Piece:
    """One patch to be: what it changes, between which trees it does, and what was left out."""

    old: str
    new: str
    header: Header
    diff: bytes
    left_out: tuple[bytes, ...] = ()


def commits(store: Store, span: Span) -> list[tuple[str, list[str]]]:
    """The commits of `span`, oldest first, with their parents.

    Raises PatchqError where they are not in the store.
    """
    done = store.git(
        [
            *("rev-list", "--reverse", "--topo-order", "--parents", "--end-of-options"),
            *(span.head, f"^{span.base}"),
        ],
        ok=(0, 128),
    )
    if done.code != 0:
        raise PatchqError(
            f"the commits of {span.head[:12]} are not in the store: {show(done.why)}",
            "run it again with a network",
        )
    found = [line.split() for line in done.out.decode().splitlines()]
    return [(commit, parents) for commit, *parents in found]


def whole(store: Store, span: Span, exclude: Sequence[str], title: str = "") -> Piece:
    """The span as one change. `title`: what the pull request is called, where it is known.

    Raises PatchqError where nothing is left of it.
    """
    own = [commit for commit, parents in commits(store, span) if len(parents) < 2]
    told = [_said(store, commit) for commit in own or [span.head]]
    first = told[0]
    subject = clean(title) or first.subject
    if len(told) == 1:
        body = first.body
    else:
        body = "\n".join(f"* {each.subject}" for each in told)
    who = [("From", first.get("From")), ("Date", told[-1].get("Date")), ("Subject", subject)]
    return _piece(store, span.base, span.head, headers.make(who, body), exclude)


def each_commit(store: Store, span: Span, exclude: Sequence[str]) -> list[Piece]:
    """One change a commit; those of which `exclude` leaves nothing are not among them.

    Raises PatchqError where a merge stands between them: its own changes would be lost.
    """
    found: list[Piece] = []
    at = span.base
    for commit, parents in commits(store, span):
        if parents != [at]:
            raise PatchqError(
                f"the commits up to {span.head[:12]} are no straight line: {commit[:12]} is a"
                " merge or stands beside them",
                "take it as one patch, without --per-commit",
            )
        at = commit
        said = _said(store, commit)
        who = [(key, said.get(key)) for key in ("From", "Date", "Subject")]
        header = headers.make(who, said.body)
        diff, left_out = _kept(store, parents[0], commit, exclude)
        if diff:
            found.append(Piece(parents[0], commit, header, diff, left_out))
    if not found:
        raise _nothing(exclude)
    return found


def reverse(store: Store, span: Span, exclude: Sequence[str], header: Header) -> Piece:
    """What takes the span back, under `header`."""
    return _piece(store, span.head, span.base, header, exclude)


def _piece(store: Store, old: str, new: str, header: Header, exclude: Sequence[str]) -> Piece:
    diff, left_out = _kept(store, old, new, exclude)
    if not diff:
        raise _nothing(exclude)
    return Piece(old, new, header, diff, left_out)


def _nothing(exclude: Sequence[str]) -> PatchqError:
    if exclude:
        return PatchqError("--exclude leaves nothing of it", "exclude less")
    return PatchqError("it changes nothing", "there is no patch to make of it")


def _kept(
    store: Store, old: str, new: str, exclude: Sequence[str]
) -> tuple[bytes, tuple[bytes, ...]]:
    trees = store.objects.tree_of(old), store.objects.tree_of(new)
    (diff,) = store.diff_texts([trees])
    return without(diff, exclude)


def without(diff: bytes, exclude: Iterable[str]) -> tuple[bytes, tuple[bytes, ...]]:
    """A canonical diff without the files that a pattern names, and these files.

    A pattern is a path with `*`, `?` and `[...]`, which also match `/`: `tests/*` is everything
    below. A content line begins with a sign, so `diff --git` at a line's start is a file's head.
    """
    patterns = tuple(exclude)
    starts = [*_FILE.finditer(diff)]
    ends = [*(found.start() for found in starts[1:]), len(diff)]
    kept, left_out = [], []
    for found, end in zip(starts, ends, strict=bool(starts)):
        path = same_path(found[1])
        if any(fnmatchcase(lossless(path), pattern) for pattern in patterns):
            left_out.append(path)
        else:
            kept.append(diff[found.start() : end])
    return b"".join(kept), tuple(left_out)


def paths(diff: bytes) -> list[bytes]:
    """The files of a canonical diff."""
    return [same_path(found[1]) for found in _FILE.finditer(diff)]


def clean(title: str) -> str:
    """A stranger's title as one harmless line."""
    return show(headers.one_line(title))


def _said(store: Store, commit: str) -> Header:
    """From, Date, Subject and text of a commit. What calls itself a field of ours is text."""
    _, _, data = next(store.objects.read_many([commit]))
    said = mail.from_commit(data, b"").header
    who = [(key, clean(said.get(key))) for key in ("From", "Date", "Subject")]
    return headers.make(who, said.body)


def patch_of(piece: Piece, number: int, name: str) -> Patch:
    """Raises PatchqError for what a series cannot hold: submodules, paths that leave the tree."""
    patch = patches.make(number, name, piece.header, piece.diff)
    assert patch.files is not None, patch.file
    return patch
