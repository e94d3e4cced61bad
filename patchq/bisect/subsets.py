"""Which subset to try next: one that halves the suspects, goes together, and can be built."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from patchq.bisect.model import Move, Tried

_PAIRS = 0.125
"""Needs that are told nowhere, expected of each move: one in eight has one."""
_BACKWARDS = 0.05
"""How much rarer a move needs a later one than an earlier one."""
_ALONE = 0.15
"""Subsets that cannot be built for a reason of their own."""
_APART = 0.8
"""What a subset is worth that does not lie between what is good and what is bad."""
_ORDERS = 5
"""Pairs of other orders that are looked at once something could not be built."""
_CUTS = 10
"""Places of an order that are looked at, the most even first."""
_LAST = 16
"""Subsets that could not be built and are still thought of."""
_LIMITS = 4
"""Ways in which moves that do not matter are taken along."""


@dataclass(frozen=True)
class Space:
    """The moves in an order in which each stands after what it needs; subsets are bits of a number,
    the first move's bit the lowest."""

    moves: tuple[Move, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        needs = {move.name: move.needs for move in self.moves}
        found: dict[str, None] = {}

        def add(name: str, above: frozenset[str]) -> None:
            if name in found or name not in needs or name in above:
                return
            for each in sorted(needs[name], key=list(needs).index if needs else None):
                add(each, above | {name})
            found[name] = None

        for name in needs:
            add(name, frozenset())
        return tuple(found)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    @cached_property
    def closures(self) -> tuple[int, ...]:
        """Of each place: its bit and those of all that it needs."""
        needs = {move.name: move.needs for move in self.moves}
        found: list[int] = []
        for place, name in enumerate(self.names):
            bits = 1 << place
            for need in needs[name]:
                if need in self._places and self._places[need] < place:
                    bits |= found[self._places[need]]
            found.append(bits)
        return tuple(found)

    def bits(self, subset: Iterable[str]) -> int:
        return sum(1 << self._places[name] for name in subset if name in self._places)

    def subset(self, bits: int) -> frozenset[str]:
        return frozenset(self.names[place] for place in places(bits))


def places(bits: int) -> Iterator[int]:
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


class Skips:
    """How likely a subset can be built, by those that could and those that could not.

    Each pair of moves may be a need that nobody has told; one that a buildable subset has parted is
    none. One that an unbuildable subset has parted is the likelier, the fewer others it has parted.
    """

    def __init__(self, space: Space, tried: Iterable[Tried]) -> None:
        there = list(tried)
        built = [space.bits(each.moves) for each in there if each.skipped is None]
        self.skipped = [space.bits(each.moves) for each in there if each.skipped is not None]
        self._known = dict.fromkeys([*self.skipped, *built], 0.0)
        self._pairs = [_pairs(space, place, built) for place in range(len(space.names))]
        factors = [(bits, 1 / (_ALONE + self._parted(bits))) for bits in self.skipped[-_LAST:]]
        for place in range(len(self._pairs)):
            found = self._pairs[place]
            for bits, factor in factors:
                if bits >> place & 1 and factor > 1:
                    found = _blamed(found, bits, factor)
            self._pairs[place] = found

    def chance(self, bits: int) -> float:
        """That it can be built, as far as pairs decide that; 0 for one that was tried."""
        if bits not in self._known:
            self._known[bits] = math.exp(-self._parted(bits))
        return self._known[bits]

    def _parted(self, bits: int) -> float:
        """How many needs, as far as one may expect, a subset does not fulfil."""
        return sum(
            weight * (mask & ~bits).bit_count()
            for place in places(bits)
            for weight, mask in self._pairs[place]
        )


def _pairs(space: Space, place: int, built: Iterable[int]) -> list[tuple[float, int]]:
    """How likely it needs what it does not tell; nothing that it was built without."""
    partners = ((1 << len(space.names)) - 1) & ~space.closures[place]
    for bits in built:
        if bits >> place & 1:
            partners &= bits
    weight = _PAIRS / len(space.names)
    before = (1 << place) - 1
    found = [(weight, partners & before), (weight * _BACKWARDS, partners & ~before)]
    return [each for each in found if each[1]]


def _blamed(
    pairs: Sequence[tuple[float, int]], bits: int, factor: float
) -> list[tuple[float, int]]:
    """The pairs, those that `bits` parts being so much likelier."""
    split = ((weight, mask & bits, mask & ~bits) for weight, mask in pairs)
    found = [
        part for weight, kept, gone in split for part in ((weight, kept), (weight * factor, gone))
    ]
    return [each for each in found if each[1]]


@dataclass(frozen=True)
class Split:
    """Subsets, each within the next, and what they are worth: 1 is a sure halving."""

    worth: float
    subsets: tuple[int, ...]


def best(
    space: Space, chances: Sequence[float], good: int, bad: int, skips: Skips, wanted: int
) -> Split:
    """Up to `wanted` subsets that split the chances evenly and go together.

    chances: of each place. good and bad: subsets that are taken for such; what is tried lies
    between them where it may.
    """
    found = Split(0.0, ())
    for order in _orders(space, len(skips.skipped)):
        chain = list(_chain(space, order, good, bad))
        if (split := _cut(space, chain, chances, good, bad, skips, wanted)).worth > found.worth:
            found = split
    return found


def _orders(space: Space, skipped: int) -> Iterator[list[int]]:
    """The moves' own order; once something was skipped also backwards, with one of them last, and
    by chance."""
    natural = list(range(len(space.names)))
    yield natural
    if skipped:
        yield natural[::-1]
        for number in range(_ORDERS):
            salt = f"{skipped} {number} "
            mixed = sorted(natural, key=lambda place: _hash(salt + space.names[place]))
            yield mixed
            yield [place for place in natural if place != mixed[0]] + mixed[:1]


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _chain(space: Space, order: Sequence[int], good: int, bad: int) -> Iterator[int]:
    """Growing subsets from `good` to `bad`, both left out."""
    bits = good
    for place in order:
        if bad >> place & 1 and not bits >> place & 1:
            bits |= space.closures[place]
            if bits not in (good, bad):
                yield bits


def _cut(
    space: Space,
    chain: Sequence[int],
    chances: Sequence[float],
    good: int,
    bad: int,
    skips: Skips,
    wanted: int,
) -> Split:
    spacing = 1 / (wanted + 1)
    masses = [(each, sum(chances[place] for place in places(each))) for each in chain]
    taken: list[int] = []
    worth = 0.0
    for number in range(1, wanted + 1):
        value, bits = 0.0, 0
        even = ((1 - (mass / spacing - number) ** 2, each) for each, mass in masses)
        for most, each in sorted(even, key=lambda pair: -pair[0])[:_CUTS]:
            if most <= value:
                break
            for variant, less in _variants(space, each, good, bad, skips):
                new = most * less * skips.chance(variant) if most * less > value else 0.0
                if new > value and variant not in taken:
                    value, bits = new, variant
        if value:
            taken.append(bits)
            worth += value / wanted
    return Split(worth, tuple(taken))


def _variants(
    space: Space, bits: int, good: int, bad: int, skips: Skips
) -> Iterator[tuple[int, float]]:
    """The subset, and others that part the suspects alike: with what is known not to matter."""
    yield bits, 1.0
    if not skips.skipped:
        return
    top, whole = bits.bit_length(), len(space.names)
    for limit in sorted({*range(top, whole, max(1, (whole - top) // _LIMITS)), whole}):
        more = bits
        for place in range(limit):
            if not bad >> place & 1 and not space.closures[place] & ~(more | 1 << place):
                more |= 1 << place
        if more != bits:
            yield more, _APART
    fewer = 0
    for place in places(bits & ~good):
        fewer |= space.closures[place]
    if fewer != bits:
        yield fewer, _APART
