"""Put changes that were made elsewhere on top of a series: three-way, whole or not at all."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

from patchq.carry.canonical import exported
from patchq.carry.fold import Carried, Carry, Release, fold
from patchq.carry.pulls.model import Stop
from patchq.carry.pulls.take import Piece, patch_of
from patchq.gitstore.store import Store
from patchq.judge.model import Conflict
from patchq.progress import SILENT, Progress
from patchq.queue import patch as patches
from patchq.queue.patch import Patch
from patchq.queue.series import Series

KINDS = {
    "deleted upstream": "the file is not in the base",
    "changed upstream, deleted by the patch": "the base has another text than what it deletes",
}
"""Kinds of conflicts in words for a change that comes from another place of upstream's history."""


@dataclass(frozen=True)
class Put:
    """`top` is the tree and commit with the new patches on it.

    `patches` are in their order as they read there; `there` are those that the base has already;
    where `asks` is not empty nothing may be recorded.
    """

    top: Release
    patches: tuple[Patch, ...]
    there: tuple[Carried, ...]
    asks: tuple[Carried, ...]
    carried: tuple[Carried, ...]


def put(
    store: Store,
    top: Release,
    series: Series,
    pieces: Sequence[Piece],
    name: str = "",
    progress: Progress = SILENT,
) -> Put:
    """Carry `pieces`, in order, onto `top`; `name` is for the first, others get their subject's.

    Neighbours in one line of commits are carried as one series.
    """
    made: list[Patch] = []
    taken = set(series.names)
    number = series.next_number
    for piece in pieces:
        wanted = name if name and not made else patches.slug(piece.header.subject, taken)
        taken.add(wanted)
        made.append(patch_of(piece, number + len(made), wanted))
    there: list[Carried] = []
    asks: list[Carried] = []
    kept: list[Patch] = []
    carried: list[Carried] = []
    for piece, patch in zip(pieces, made, strict=True):
        progress.step("carrying", len(carried), len(pieces), "patches")
        done = one(store, piece.old, top, patch)
        (found,) = done.patches
        carried.append(found)
        if found.judgement.action == "drop":
            there.append(found)
            continue
        if found.judgement.action == "ask":
            asks.append(found)
        kept.append(exported(store, done)[patch.name])
        top = Release(top.name, done.commit, done.tree)
    # Numbers are given once: those that were not needed are not spent.
    renumbered = [
        patches.make(number + place, patch.name, patch.header, patch.diff)
        for place, patch in enumerate(kept)
    ]
    return Put(top, tuple(renumbered), tuple(there), tuple(asks), tuple(carried))


def one(store: Store, old: str, top: Release, patch: Patch) -> Carry:
    """Carry one patch from the commit (or tree) `old` onto `top`."""
    return fold(store, Release("its base", old, store.objects.tree_of(old)), top, (patch,))


def stop(carried: Carried, but: Container[Conflict] = ()) -> Stop:
    """Why that patch cannot be put there; the conflicts in `but` are not told."""
    found = carried.judgement
    clashes = carried.stop.clashes if carried.stop is not None else ()
    told = [replace(each, kind=KINDS.get(each.kind, each.kind)) for each in found.conflicts]
    conflicts = tuple(new for old, new in zip(found.conflicts, told, strict=True) if old not in but)
    return Stop(carried.patch.header.subject, conflicts, found.evidence, clashes)
