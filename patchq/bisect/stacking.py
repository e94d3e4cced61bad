"""Patches of both ends, put one on the other on one base: trees, commits, and their texts there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from patchq.bisect.placing import Put, Standing, Version, put
from patchq.carry.canonical import standing
from patchq.carry.message import ident, message
from patchq.gitstore.store import Store
from patchq.queue.patch import Patch


@dataclass(frozen=True)
class Base:
    """An upstream tree that a subset may stand on. `move`: what leads to it, "" for A's own."""

    name: str
    commit: str
    tree: str
    facts: tuple[tuple[str, str], ...] = ()
    move: str = ""


@dataclass(frozen=True)
class Slot:
    """A patch of A, of B, or of both. `move`: what decides between the two, "" where nothing does:
    then it is the same change in both, carried.
    """

    name: str
    a: Version | None
    b: Version | None
    move: str = ""

    def wanted(self, made: bool, at_b: bool) -> tuple[Version, ...]:
        """The versions that may stand for it, the best first.

        `made`: its move is made; `at_b`: the base is B's.
        """
        if self.move:
            chosen = self.b if made else self.a
            return (chosen,) if chosen is not None else ()
        both = (self.b, self.a) if at_b else (self.a, self.b)
        return tuple(each for each in both if each is not None)


@dataclass(frozen=True)
class Stack:
    """The series on a base: `patches` by slot as they read there, `tree` what they give.

    `there`: slots of which nothing is left to do on this base; `misfits`: those that do not go
    there, and why.
    """

    tree: str
    patches: Mapping[str, Patch]
    there: tuple[str, ...]
    misfits: Mapping[str, str]


def stack(
    store: Store,
    base: Base,
    wanted: Sequence[tuple[str, Sequence[Version]]],
    *,
    instead: Mapping[str, Version] | None = None,
) -> Stack:
    """Put the slots in their order on `base`, each in the first of its versions that goes.

    A slot that does not go is left out, or `instead` of it stands for those after it.
    """
    on = Standing(store, base.tree)
    placed: list[tuple[str, Version, Put]] = []
    there: list[str] = []
    misfits: dict[str, str] = {}
    with store.fast_import(compression=0) as importer:
        parent: str | int = base.commit
        for name, versions in wanted:
            if not versions:
                continue
            version, found = _first(store, versions, on, base)
            if found.word == "misfit":
                misfits[name] = found.why
                other = (instead or {}).get(name)
                if other is None:
                    continue
                version, found = other, put(store, other, on, base.tree)
            if found.word == "there":
                there.append(name)
            if found.word not in ("exact", "merged"):
                continue
            writes = on.take(found.writes)
            parent = importer.commit(message(version.patch), ident(version.patch), parent, writes)
            placed.append((name, version, found))
        ids = importer.finish()
    trees = [base.tree, *store.objects.trees_of(ids)]
    patches = _texts(store, trees, placed)
    return Stack(trees[-1], patches, tuple(there), misfits)


def _first(
    store: Store, versions: Sequence[Version], on: Standing, base: Base
) -> tuple[Version, Put]:
    """The first version that stands as it is, else the first that can be merged."""
    found = [(each, put(store, each, on, base.tree)) for each in versions[:1]]
    if found[0][1].word != "exact":
        found += [(each, put(store, each, on, base.tree)) for each in versions[1:]]
    for word in ("exact", "merged", "there"):
        for each in found:
            if each[1].word == word:
                return each
    return found[0]


def _texts(
    store: Store, trees: Sequence[str], placed: Sequence[tuple[str, Version, Put]]
) -> dict[str, Patch]:
    """The patches as they read there; one that meets the very files of its end is that end's."""
    diffs = store.diff_texts(list(pairwise(trees)))
    series = [version.patch for _, version, _ in placed]
    out: dict[str, Patch] = {}
    for (name, version, found), diff, tree in zip(placed, diffs, trees[1:], strict=True):
        if not diff:
            out[name] = standing(store, tree, version.patch, series)
        elif found.word == "exact":
            out[name] = version.patch
        else:
            out[name] = version.patch.with_diff(diff)
    return out
