"""Files that the patch itself moves. Diffs are kept without renames: a move is a deletion and an
addition of similar content, and what upstream did to the file must go along.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from patchq.carry.merge import Blob, Outcome, Track, merge, opposed
from patchq.gitstore.store import Store
from patchq.judge.model import FileSeen
from patchq.queue.diff import Hunk

SIMILAR = 0.5
"""Share of common lines from which a deleted and an added file are one that moved (git's -M)."""


@dataclass(frozen=True)
class Merge:
    """One path of one patch: where it stands, what the patch makes of it, what came out.

    `source` is the track that a file which the patch moves was merged on.
    """

    track: Track
    theirs: Blob | None
    hunks: tuple[Hunk, ...]
    outcome: Outcome
    source: Track | None = None

    @property
    def sides(self) -> tuple[Blob | None, Blob | None, Blob | None]:
        """base, ours and theirs, as they were merged; read before the track moves on."""
        track = self.source or self.track
        return track.old, track.new, self.theirs

    @property
    def seen(self) -> FileSeen:
        return self.outcome.seen

    @property
    def marked(self) -> bytes:
        return self.outcome.marked


def yielding(merges: list[Merge], paths: Collection[bytes]) -> list[Merge]:
    """The merges with upstream's text winning every conflict in `paths`."""
    return [_yielded(each) if each.seen.path in paths else each for each in merges]


def _yielded(each: Merge) -> Merge:
    text = each.outcome.yielding
    if text is None:
        return each
    left: Literal["clean", "empty"] = "empty" if text == each.track.new else "clean"
    return replace(each, outcome=Outcome(text, replace(each.seen, merge=left, kind="")))


def follow(store: Store, merges: list[Merge], labels: tuple[str, str, str]) -> list[Merge]:
    """The merges of a patch with its own moves seen: each deletion beside its similar addition."""
    out = list(merges)
    for place, gone in enumerate(merges):
        base, ours = gone.track.old, gone.track.new
        if gone.theirs is not None or base is None or ours is None:
            continue
        if ours is base and gone.track.new_path == gone.track.path:
            continue
        added = [
            (_similar(base, each.theirs), number)
            for number, each in enumerate(out)
            if each.track.old is None and each.theirs is not None
        ]
        share, number = max(added, default=(0.0, 0))
        if share >= SIMILAR:
            out[place], out[number] = _pair(store, gone, base, ours, out[number], labels)
    return out


def _pair(
    store: Store,
    gone: Merge,
    base: Blob,
    ours: Blob,
    come: Merge,
    labels: tuple[str, str, str],
) -> tuple[Merge, Merge]:
    """The two halves of one move, once upstream changed or moved the file as well."""
    upstream_moved = gone.track.new_path != gone.track.path
    if upstream_moved and gone.track.new_path != come.track.new_path:
        seen = replace(gone.seen, merge="conflict", kind="both moved the file, to other places")
        marked = opposed(ours, base, None, labels)
        return replace(gone, outcome=Outcome(None, seen, None, marked)), come
    virtual = replace(come.track, old=base, new=ours, gaps=None, gain=gone.track.gain)
    outcome = merge(store, virtual, come.theirs, (), labels)
    if upstream_moved:
        # Upstream made the same move: the old name is gone, the new one must not go with it.
        seen = replace(gone.seen, merge="empty", same=gone.seen.atoms, kind="")
        left = Outcome(ours, seen)
    else:
        left = Outcome(None, replace(gone.seen, merge="clean", kind=""))
        if outcome.seen.merge == "empty":
            # Upstream has the edit, but not the file in its new place.
            outcome = replace(outcome, seen=replace(outcome.seen, merge="clean", reverse=False))
    come = replace(come, outcome=replace(outcome, gaps=None), source=virtual)
    return replace(gone, outcome=left), come


def _similar(one: Blob, other: Blob | None) -> float:
    if other is None:
        return 0.0
    left, right = Counter(one.lines), Counter(other.lines)
    return sum((left & right).values()) / max(len(one.lines), len(other.lines), 1)
