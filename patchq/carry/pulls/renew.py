"""Exchange what a series carries of a pull request for its new head; our own edits stay.

Each patch is merged three-way: base is the pinned head's change on the series, one side our patch,
the other the new head's change there. The patches above are carried onto the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from patchq.carry.canonical import exported
from patchq.carry.fold import Carried, Carry, Release, fold
from patchq.carry.pulls.model import Stop
from patchq.carry.pulls.put import one, stop
from patchq.carry.pulls.take import Piece, patch_of
from patchq.gitstore.store import Store
from patchq.judge.model import Judgement, Signal
from patchq.queue.header import Header
from patchq.queue.patch import Patch


@dataclass(frozen=True)
class Exchange:
    """What a patch was made of, what it is to be made of now, and its new header."""

    was: Piece
    wants: Piece
    header: Header


@dataclass(frozen=True)
class Renewed:
    """The series with new heads: one entry a patch, and the texts of the kept ones by name.

    `edited` names the patches in which edits of our own were kept. Nothing may be recorded where
    `stops` is not empty.
    """

    carried: tuple[Carried, ...]
    texts: Mapping[str, Patch]
    tree: str
    edited: tuple[str, ...]
    stops: tuple[Stop, ...]


def renew(store: Store, whole: Carry, exchanges: Mapping[str, Exchange]) -> Renewed:
    """`whole` is the series on its own base; `exchanges` are by the names of its patches."""
    old = new = whole.new
    carried: list[Carried] = []
    texts: dict[str, Patch] = {}
    edited: list[str] = []
    stops: list[Stop] = []
    for to_renew, group in groupby(whole.patches, lambda each: each.patch.name in exchanges):
        members = list(group)
        if not to_renew:
            done = fold(store, old, new, tuple(each.patch for each in members))
            old, new = _after(old, members), Release("series", done.commit, done.tree)
            carried += done.patches
            texts |= exported(store, done)
            stops += map(stop, done.asks)
            continue
        for each in members:
            one_done = _exchange(store, old, new, each, exchanges[each.patch.name])
            old, new = _after(old, [each]), one_done.top
            carried.append(one_done.carried)
            texts[each.patch.name] = one_done.text
            edited += [each.patch.name] if one_done.edited else []
            stops += one_done.stops
    return Renewed(tuple(carried), texts, new.tree, tuple(edited), tuple(stops))


def _after(at: Release, members: Sequence[Carried]) -> Release:
    last = members[-1]
    commits = [each.commit for each in members if each.commit is not None]
    return Release("series", commits[-1] if commits else at.commit, last.tree)


@dataclass(frozen=True)
class _Done:
    carried: Carried
    text: Patch
    top: Release
    edited: bool
    stops: tuple[Stop, ...]


def _exchange(store: Store, old: Release, new: Release, ours: Carried, how: Exchange) -> _Done:
    """`old` and `new` are the two sides below the patch `ours`."""
    number, name = ours.patch.number, ours.patch.name
    theirs = one(store, how.wants.old, new, patch_of(how.wants, number, name))
    base = one(store, how.was.old, old, patch_of(how.was, number, name))
    stops = _stops(theirs.patches[0], base.patches[0])
    top = Release("series", theirs.commit, theirs.tree)
    (own,) = store.diff_texts([(base.tree, ours.tree)])
    if own:
        # What conflicted when it was first carried is the same on both sides, and our own answer
        # to it is one of the edits.
        mine = ours.patch.with_diff(own)
        kept = fold(store, Release("the pinned head", base.commit, base.tree), top, (mine,))
        stops += tuple(map(stop, kept.asks))
        top = Release("series", kept.commit, kept.tree)
    (diff,) = store.diff_texts([(new.tree, top.tree)])
    text = ours.patch.with_header(how.header).with_diff(diff)
    if not diff and not stops:
        told = Signal("merge", "landed", "nothing is left of it: what is below has it all")
        stops = (Stop(ours.patch.header.subject, (), (told,)),)
    said = Signal("pull-request", "changed", "its new head was taken")
    judgement = Judgement("updated", "update", (said,))
    carried = replace(
        ours, judgement=judgement, before=new.tree, tree=top.tree, commit=top.commit, carry="clean"
    )
    return _Done(carried, text, top, bool(own), stops)


def _stops(theirs: Carried, base: Carried) -> tuple[Stop, ...]:
    """What the new head conflicts with, unless the pinned one did in the very same way."""
    if theirs.judgement.action not in ("ask", "drop"):
        return ()
    known = set(base.judgement.conflicts)
    if theirs.judgement.action == "ask" and base.judgement.action == "ask":
        new = tuple(
            conflict
            for conflict in theirs.judgement.conflicts
            if conflict not in known or _sides(theirs, conflict.path) != _sides(base, conflict.path)
        )
        if not new:
            return ()
        return (stop(theirs, [each for each in theirs.judgement.conflicts if each not in new]),)
    return (stop(theirs),)


def _sides(carried: Carried, path: bytes) -> list[tuple[bytes, bytes, bytes]]:
    """The three versions of each place of the path that conflicts."""
    found = carried.stop.clashes if carried.stop is not None else ()
    return [
        (side.ours, side.base, side.theirs)
        for clash in found
        if clash.path == path
        for side in clash.sides
    ]
