"""Patches that upstream took as one: a squash of several, tried from the top down.

Alone, the first of them conflicts with what the later ones made of its lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from patchq.carry.merge import Blob
from patchq.carry.tracks import Tracks, after, files_of
from patchq.gitstore.store import Store
from patchq.judge.model import Observation
from patchq.judge.verdict import MOST
from patchq.queue.patch import Patch

REACH = 30
"""Later patches that are looked at."""


def find_unit(
    store: Store, tracks: Tracks, patches: Sequence[Patch], place: int
) -> Observation | None:
    """The patches from `place` on that upstream has as one change, or None.

    Taken are, in order, later patches that touch a path of those already taken.
    """
    state: dict[bytes, Blob | None] = {}
    taken: list[Patch] = []
    passed: set[bytes] = set()
    for patch in patches[place : place + REACH]:
        touched = {file.path for file in files_of(patch)}
        if taken and not touched & state.keys():
            passed |= touched
            continue
        if touched & passed:
            return None
        for file in files_of(patch):
            base = state[file.path] if file.path in state else tracks.tracks[file.path].old
            state[file.path] = after(base, file, patch)
        taken.append(patch)
        if len(taken) > 1 and (changed := _landed(store, tracks, state)) is not None:
            return Observation((), tuple(patch.name for patch in taken), changed)
    return None


def _landed(store: Store, tracks: Tracks, state: dict[bytes, Blob | None]) -> bool | None:
    """Whether upstream has these contents: False as they are, True in other words, None not."""
    changed, seen = False, False
    for path, theirs in state.items():
        track = tracks.tracks[path]
        base, ours = track.old, track.new
        if theirs == base:
            continue
        seen = True
        if theirs == ours:
            continue
        if ours is None or theirs is None or not (ours.mergeable and theirs.mergeable):
            return None
        before = base.data if base is not None else b""
        if theirs.mode != ours.mode and (base is None or theirs.mode != base.mode):
            return None
        merged = store.merge_file(before, ours.data, theirs.data, favour="ours")
        if merged.data != ours.data:
            return None
        added = _counted(theirs) - (_counted(base) if base else Counter())
        total, found = sum(added.values()), track.gain.shared(added)
        if not total or found / total < MOST:
            return None
        changed = changed or found < total
    # Patches that take each other back are nothing that upstream could have.
    return changed if seen else None


def _counted(blob: Blob) -> Counter[bytes]:
    return Counter(line.rstrip(b"\r\n") for line in blob.lines if line.strip())
