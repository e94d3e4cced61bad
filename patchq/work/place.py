"""Patches put on a tree exactly as they read, one commit each, until one does not fit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from patchq.carry.canonical import canonical, named, readable
from patchq.carry.message import ident, message
from patchq.carry.tracks import Misfit, Tracks
from patchq.errors import PatchqError
from patchq.gitstore.store import Store
from patchq.queue.diff import FileDiff
from patchq.queue.patch import Patch
from patchq.work.state import Below, Placed, content_id


def place(store: Store, below: Below, patches: Sequence[Patch]) -> tuple[Placed, ...]:
    """The patches on `below`, in order; fewer where one does not apply as it reads.

    Raises PatchqError for a diff that is none.
    """
    done: list[Placed] = []
    while len(done) < len(patches):
        here = done[-1] if done else below
        rest = patches[len(done) :]
        placed = _exact(store, here, list(takewhile(lambda patch: patch.files is not None, rest)))
        if not placed:
            placed = _as_git_says(store, here, rest[0])
        if not placed:
            break
        done += placed
    return tuple(done)


def _as_git_says(store: Store, below: Below, patch: Patch) -> tuple[Placed, ...]:
    """A patch in another tool's form, or one whose ids are not those of the files (people edit
    them by hand): git applies it, and at the very lines that it names.
    """
    try:
        (ready,) = canonical(store, below.tree, [patch])
    except PatchqError:
        return ()
    placed = _exact(store, below, [ready], known=[patch])
    if patch.files is None or not placed:
        return placed
    own = _exact(store, below, [patch], trusted=True)
    return placed if own and own[0].tree == placed[0].tree else ()


def _exact(
    store: Store,
    below: Below,
    patches: Sequence[Patch],
    *,
    known: Sequence[Patch] = (),
    trusted: bool = False,
) -> tuple[Placed, ...]:
    """Those whose files are the very ones that they were made on (`trusted`: that fit).

    `known` are the same patches as they stand in the series.
    """
    if not patches:
        return ()
    readable(store, below.tree, patches)
    tracks = Tracks(store, below, below, patches)
    parent: str | int = below.commit
    with store.fast_import(compression=0) as importer:
        for patch in patches:
            if not trusted and not all(_is_same(tracks, file) for file in patch.files or ()):
                break
            marked = named(patch)
            if marked is not None and tracks.at(marked).new is None:
                break
            try:
                merges = tracks.merge(patch, ("", "", ""))
            except Misfit:
                break
            if any(each.seen.merge == "conflict" for each in merges):
                break  # a folder stands where it makes a file
            writes = tracks.commit(merges, keep=True)
            parent = importer.commit(message(patch), ident(patch), parent, writes)
        ids = importer.finish()
    trees = store.objects.trees_of(ids)
    return tuple(
        Placed(patch.name, commit, tree, patch.number, content_id(patch))
        for patch, commit, tree in zip(known or patches, ids, trees, strict=False)
    )


def _is_same(tracks: Tracks, file: FileDiff) -> bool:
    """Whether the file is the one that the diff was made on, by its id.

    That its lines stand there is not enough: git wants the last ones at the end, and what is
    binary has no lines.
    """
    here = tracks.tracks[file.path].old
    if file.added or here is None or file.old_oid is None:
        return True  # it fits, or it does not
    return here.oid == file.old_oid
