"""Commits put together to patches: brought beside each other where they can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from patchq.carry import arrange
from patchq.carry.fold import Carry
from patchq.carry.groups import Group
from patchq.carry.incoming import Source
from patchq.carry.replay import Clash, chain, replay
from patchq.errors import PatchqError
from patchq.gitstore.store import Store
from patchq.paths import show
from patchq.queue import patch as patches


@dataclass(frozen=True)
class Picked:
    """Sources on top of the series: the trees before and after each, and how they are grouped."""

    sources: tuple[Source, ...]
    trees: tuple[str, ...]
    groups: tuple[Group, ...]
    mends: tuple[int, ...]


def regrouped(store: Store, below: Carry, picked: Picked) -> tuple[Picked, list[bytes]]:
    """The groups in an order that holds, and what each changes, one on the other.

    `below` is the series that they go on. Raises PatchqError that names the commits which stand
    between each other.
    """
    singles = store.diff_texts(list(pairwise(picked.trees)))
    last = sorted(picked.groups, key=lambda group: max(group.members))
    clashes: list[tuple[Clash, ...]] = []
    for ordered in (picked, replace(picked, groups=tuple(last))):
        trees = _trees(store, below, ordered, singles)
        if isinstance(trees, list):
            ends = [0]
            for group in ordered.groups:
                ends.append(ends[-1] + len(group.members))
            pairs = [(trees[start], trees[end]) for start, end in pairwise(ends)]
            return ordered, store.diff_texts(pairs)
        clashes.append(trees)
    raise _interleaved(picked, clashes[0])


def _trees(
    store: Store, below: Carry, picked: Picked, singles: Sequence[bytes]
) -> list[str] | tuple[Clash, ...]:
    """The tree before the first commit and after each, in the order of the groups."""
    order = [place for group in picked.groups for place in group.members]
    if order == list(range(len(order))):
        return list(picked.trees)
    loose = [
        patches.make(place, f"commit-{place}", source.brought.header, diff)
        for place, (source, diff) in enumerate(zip(picked.sources, singles, strict=True))
    ]
    known = chain(arrange.files_of(store, below.tree, loose), loose)
    done = replay(known, [(loose[place], known.changes[loose[place].name]) for place in order])
    return done.clashes or arrange.trees_of(store, below.commit, below.tree, done.placed)


def _interleaved(picked: Picked, clashes: Sequence[Clash]) -> PatchqError:
    def told(name: str) -> str:
        source = picked.sources[int(name.removeprefix("commit-"))]
        return f"{source.label} ({show(source.brought.header.subject)})"

    lines = []
    for clash in clashes:
        needs = f" needs {', '.join(map(told, clash.others))}" if clash.others else ""
        lines.append(f"{told(clash.patch)} in {show(clash.path)}{needs}")
    return PatchqError(
        "the commits stand between each other and cannot be grouped so: " + "; ".join(lines),
        "put those that need each other into one group (--groups FILE), or leave them apart",
    )
