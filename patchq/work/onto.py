"""A patch on files that read otherwise than it knows them: three-way, path by path.

What it was made on is in its own `index` lines, and the store forgets nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from patchq.carry.merge import Blob, Outcome, Track, merge
from patchq.carry.tracks import Misfit, after
from patchq.errors import PatchqError
from patchq.gitstore.fastimport import Write
from patchq.gitstore.objects import GITLINK, TREE
from patchq.gitstore.store import Store
from patchq.queue.diff import FileDiff
from patchq.queue.patch import Patch
from patchq.work.report import Clash

Here = Callable[[bytes], Blob | None]


class Unknown(Exception):
    """What a patch was made on is not in the store, or its diff does not fit it."""


@dataclass(frozen=True)
class Onto:
    """What the patch writes (its own side where they clash), and what shows the clashes."""

    writes: tuple[Write, ...] = field(repr=False)
    shown: tuple[Write, ...] = field(repr=False)
    clashes: tuple[Clash, ...]


def reader(store: Store, tree: str) -> Here:
    """The files of a tree. A folder or a submodule is no file."""

    def here(path: bytes) -> Blob | None:
        entry = store.objects.lookup(tree, path)
        if entry is None or entry.mode in (TREE, GITLINK):
            return None
        return Blob(entry.mode, store.objects.blob(entry.oid))

    return here


def onto(store: Store, tree: str, patch: Patch, labels: tuple[str, str, str]) -> Onto:
    """`patch` merged onto `tree`; `labels` name the three sides in conflict markers.

    Raises Unknown.
    """
    here = reader(store, tree)
    writes: list[Write] = []
    shown: list[Write] = []
    clashes: list[Clash] = []
    for file in patch.files or ():
        found = here(file.path)
        outcome = merged(store, patch, file, found, labels, obstacle(store, tree, file.path))
        result = outcome.result
        if outcome.seen.merge == "conflict":
            kind = outcome.seen.kind.replace("upstream", "below")
            clashes.append(Clash(file.path, kind, bool(outcome.marked)))
            if outcome.marked:
                mode = (result or found or Blob("100644", b"")).mode
                shown.append(Write(file.path, mode, outcome.marked))
                continue
            if obstacle(store, tree, file.path):
                continue
        if result != found:
            write = Write(file.path, result.mode, result.data) if result else Write(file.path)
            shown.append(write)
            writes.append(write)
    return Onto(tuple(writes), tuple(shown), tuple(clashes))


def merged(
    store: Store,
    patch: Patch,
    file: FileDiff,
    here: Blob | None,
    labels: tuple[str, str, str],
    in_the_way: str = "",
) -> Outcome:
    """One path of `patch` onto what stands there. Raises Unknown."""
    base = before(store, file, here)
    try:
        theirs = after(base, file, patch)
    except Misfit as error:
        raise Unknown(error.message) from error
    hunks = () if file.whole or file.binary else file.hunks
    track = Track(file.path, file.path, base, here)
    return merge(store, track, theirs, hunks, labels, in_the_way if here is None else "")


def before(store: Store, file: FileDiff, here: Blob | None) -> Blob | None:
    """The file as the patch knows it. Raises Unknown where the store does not have it."""
    if file.added:
        return None
    if file.old_oid is None:  # only the mode changes
        return Blob(file.old_mode, here.data if here is not None else b"")
    if here is not None and here.oid == file.old_oid:
        return Blob(file.old_mode, here.data)
    try:
        return Blob(file.old_mode, store.objects.blob(file.old_oid))
    except PatchqError as error:
        raise Unknown("what it was made on is not known here") from error


def obstacle(store: Store, tree: str, path: bytes) -> str:
    """What stands where a file would be made: a folder, or a file above it."""
    entry = store.objects.lookup(tree, path)
    if entry is not None and entry.mode in (TREE, GITLINK):
        return "a folder stands there"
    parts = path.split(b"/")
    for end in range(1, len(parts)):
        above = store.objects.lookup(tree, b"/".join(parts[:end]))
        if above is not None and above.mode != TREE:
            return "a file stands where its folder should be"
    return ""
