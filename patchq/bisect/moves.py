"""What moved between two runners, in parts that can be made one without the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from patchq.bisect import ends, parts, said, way
from patchq.bisect.ends import End
from patchq.bisect.joined import joined
from patchq.bisect.model import Move, closed
from patchq.bisect.placing import Version, carries
from patchq.bisect.stacking import Base, Slot, stack
from patchq.carry.arrange import files_of
from patchq.carry.canonical import applied, readable
from patchq.config import Source
from patchq.errors import PatchqError
from patchq.gitstore.store import Store
from patchq.judge.requirement import RELAXES
from patchq.progress import SILENT, Progress
from patchq.upstream.releases import Release
from patchq.work import graph

ORDER = "series/order"


@dataclass(frozen=True)
class Between:
    """Two ends and the moves from one to the other.

    `bases` are A's base and those that moves lead to, in order. `slots` are the patches of both in
    the order of B's series, `orders` their names in A's order and in B's, `trees` the runner trees
    of both. `parts`: the single differences that each move stands for. `source`: where both bases
    are found.
    """

    root: Path
    a: End
    b: End
    moves: tuple[Move, ...]
    bases: tuple[Base, ...] = field(repr=False)
    slots: tuple[Slot, ...] = field(repr=False)
    orders: tuple[tuple[str, ...], tuple[str, ...]] = field(repr=False)
    trees: tuple[str, str] = field(repr=False)
    parts: Mapping[str, frozenset[str]] = field(repr=False)
    source: Source = field(repr=False)
    offline: bool = False

    def made(self, subset: frozenset[str]) -> frozenset[str]:
        """The single differences that `subset` makes.

        Raises PatchqError for a move that is none, or one without what it needs.
        """
        if unknown := sorted(subset - self.parts.keys()):
            raise PatchqError(
                f"{unknown[0]!r} did not move between {self.a.label} and {self.b.label}",
                f"the moves are: {', '.join(sorted(self.parts))}",
            )
        if missing := sorted(closed(self.moves, subset) - subset):
            raise PatchqError(
                f"these moves need {missing[0]}, which is not among them", "add what they need"
            )
        return frozenset(part for name in subset for part in self.parts[name])

    def base(self, made: frozenset[str]) -> Base:
        """The furthest base that `made` leads to."""
        return next((each for each in reversed(self.bases) if each.move in made), self.bases[0])


def between(
    root: Path,
    a: str,
    b: str,
    queue: str | None = None,
    *,
    commits: bool | None = None,
    offline: bool = False,
    progress: Progress = SILENT,
) -> Between:
    """The moves from the runner `a` to the runner `b` (words as `ends` takes them).

    `commits`: upstream's commits between the bases are moves of their own (None: where the queue
    takes its releases from git, so that such a base can be built). Raises PatchqError where an end
    cannot be read, or its series does not apply to its own base.
    """
    old, new = ends.read(root, a, queue), ends.read(root, b, queue)
    config = new.queue.config
    source = config.sources[0]
    git = next((each for each in config.sources if each.kind == "git"), None)
    if commits and git is None:
        raise PatchqError(
            f"{config.name} has no history of upstream",
            "add one with `patchq upstream add-git URL`",
        )
    if git is not None and (commits or (commits is None and source.kind == "git")):
        source = git
    with way.opened(root, source, offline=offline, progress=progress) as upstream:
        progress.step("reading both ends")
        bases = [way.base_of(upstream, old), way.base_of(upstream, new)]
        if (bases[0].name, bases[0].tree) == (bases[1].name, bases[1].tree):
            bases.pop()
        wanted = commits if commits is not None else source.kind == "git"
        found: list[Move] = []
        if len(bases) == 2:
            bases, found = way.between(upstream, bases, new, wanted)
        return _between(root, upstream.store, old, new, tuple(bases), found, source, offline)


def _between(
    root: Path,
    store: Store,
    a: End,
    b: End,
    bases: tuple[Base, ...],
    found: list[Move],
    source: Source,
    offline: bool,
) -> Between:
    left, right = _versions(store, bases[0], a), _versions(store, bases[-1], b)
    slots, orders = _slots(store, left, right)
    last = bases[-1].move
    based = frozenset({last} if last else ())
    differing = list(found)
    differing += _patches(store, a, b, slots, based, (left, bases[0]), (right, bases[-1]))
    if _reordered(slots, orders):
        slots_moved = frozenset(slot.move for slot in slots if slot.move)
        says = "the series in another order"
        differing.append(Move(ORDER, "patch", says, None, slots_moved | based))
    differing += parts.differences(a, b, based)
    if last:
        needed, had, there = _with_base(store, b, bases, slots, orders)
        if len(found) == 1:
            needed |= {parts.REQUIREMENTS}
        else:
            # Each goes of itself on the commit that has it: it is no difference.
            differing = [each for each in differing if each.name not in there]
        differing = [
            replace(each, needs=each.needs | needed)
            if each.name == last
            else (replace(each, needs=each.needs | based) if each.name in had else each)
            for each in differing
        ]
    made = joined(differing)
    trees = _top(left, bases[0]), _top(right, bases[-1])
    return Between(root, a, b, made.moves, bases, slots, orders, trees, made.parts, source, offline)


def _top(versions: Mapping[str, Version], base: Base) -> str:
    """The tree that all of them give."""
    return list(versions.values())[-1].after if versions else base.tree


def _versions(store: Store, base: Base, end: End) -> dict[str, Version]:
    series = readable(store, base.tree, end.queue.series.applied)
    release = Release(base.name, base.commit, base.tree)
    carry = applied(store, release, series, SILENT)
    original = {patch.name: patch for patch in end.queue.series.applied}
    return {
        each.patch.name: Version(
            original[each.patch.name], each.patch, each.before, each.tree, base.tree
        )
        for each in carry.patches
    }


def _slots(
    store: Store, a: Mapping[str, Version], b: Mapping[str, Version]
) -> tuple[tuple[Slot, ...], tuple[tuple[str, ...], tuple[str, ...]]]:
    """The patches of both, B's name for each; and the orders in which they stand."""
    called = {name: name for name in a}
    fresh = {each.patch.number: name for name, each in b.items() if name not in a}
    for name, version in a.items():
        other = fresh.get(version.patch.number)
        if name not in b and other is not None and carries(store, version, b[other]):
            called[name] = other  # it was only renamed
    by = {new: a[old] for old, new in called.items()}
    order_a, order_b = _merged(list(by), list(b)), _merged(list(b), list(by))
    slots = []
    for name in order_b:
        was, now = by.get(name), b.get(name)
        moved = was is None or now is None or not _alike(store, was, now)
        slots.append(Slot(name, was, now, name if moved else ""))
    return tuple(slots), (tuple(order_a), tuple(order_b))


def _alike(store: Store, a: Version, b: Version) -> bool:
    """Whether B's is A's, carried. What it sets aside among requirements belongs to it."""
    if a.patch.header.all(RELAXES) != b.patch.header.all(RELAXES):
        return False
    return a.parts.diff == b.parts.diff or carries(store, a, b)


def _merged(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """`first` with what only `second` has, each behind the one that it follows there."""
    out = list(first)
    before = ""
    for name in second:
        if name not in out:
            out.insert(out.index(before) + 1 if before else 0, name)
        before = name
    return out


def _reordered(slots: Sequence[Slot], orders: tuple[Sequence[str], Sequence[str]]) -> bool:
    """Whether the patches that both have stand in another order."""
    both = {slot.name for slot in slots if slot.a is not None and slot.b is not None}
    first, second = ([name for name in order if name in both] for order in orders)
    return first != second


def _patches(
    store: Store,
    a: End,
    b: End,
    slots: Sequence[Slot],
    based: frozenset[str],
    left: tuple[Mapping[str, Version], Base],
    right: tuple[Mapping[str, Version], Base],
) -> list[Move]:
    moved = {slot.name for slot in slots if slot.move}
    below_a, below_b = _below(store, *left), _below(store, *right)
    out = []
    for slot in slots:
        if not slot.move:
            continue
        needs: set[str] = set()
        if slot.b is not None:
            needs |= (below_b[slot.name] & moved) | based
        else:
            # Whatever stands on it has to go, or to be written anew, first.
            assert slot.a is not None
            name = slot.a.patch.name
            needs |= {other for other in moved if name in below_a.get(other, ())}
        url = said.patch_url(b, slot)
        needs.discard(slot.name)
        out.append(Move(slot.name, "patch", said.patch(a, b, slot), url, frozenset(needs)))
    return out


def _below(store: Store, versions: Mapping[str, Version], base: Base) -> dict[str, frozenset[str]]:
    """All that each patch of an end stands on, through others as well, and itself."""
    series = [version.parts for version in versions.values()]
    lengths = {
        path: None if file is None else len(file.lines)
        for path, file in files_of(store, base.tree, series).items()
    }
    needs = graph.needed(lengths, series)
    return {name: graph.closed([name], needs) for name in versions}


def _with_base(
    store: Store,
    b: End,
    bases: Sequence[Base],
    slots: Sequence[Slot],
    orders: tuple[Sequence[str], Sequence[str]],
) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """The patches' moves that B's base needs; those of them that it brings itself; and those of
    patches that have nothing left to do there.

    It needs those of patches that do not go there as A has them, and of those that it has: seen by
    putting A's patches on it, and told by what a sync wrote when it dropped one.
    """
    by_name = {slot.name: slot for slot in slots}
    wanted = [(name, by_name[name].wanted(False, True)) for name in orders[0]]
    instead = {slot.name: slot.b for slot in slots if slot.b is not None}
    tried = stack(store, bases[-1], wanted, instead=instead)
    there = frozenset(name for name in tried.there if by_name[name].move)
    had = there | {slot.name for slot in slots if said.landed(b, slot)}
    torn = {name for name in tried.misfits if by_name[name].move}
    return had | torn, had, frozenset(name for name in there if by_name[name].b is None)
