"""Differences that go only together are one move: pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from patchq.bisect.model import Move


@dataclass(frozen=True)
class Joined:
    """Moves without a cycle among their needs, in an order in which each follows what it needs.

    `parts`: the differences that each stands for, by its name.
    """

    moves: tuple[Move, ...]
    parts: Mapping[str, frozenset[str]]


def joined(differences: Sequence[Move]) -> Joined:
    """Each round of differences that need one another becomes one move, called like the first.

    Needs that are not among `differences` do not count.
    """
    known = {each.name: each for each in differences}
    place = {name: at for at, name in enumerate(known)}
    rounds = [sorted(group, key=place.__getitem__) for group in _rounds(known)]
    of = {name: group[0] for group in rounds for name in group}
    moves = []
    for group in rounds:
        first = known[group[0]]
        needs = {of[n] for name in group for n in known[name].needs if n in of} - {first.name}
        says = first.says
        if len(group) > 1:
            rest = "; ".join(known[name].says for name in group[1:])
            says = f"{says}, together with: {rest}"
        moves.append(replace(first, says=says, needs=frozenset(needs)))
    return Joined(tuple(moves), {group[0]: frozenset(group) for group in rounds})


def _rounds(known: Mapping[str, Move]) -> list[list[str]]:
    """Tarjan's strongly connected components; each comes after those that it needs."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    on_path: set[str] = set()
    found: list[list[str]] = []
    for start in known:
        if start in number:
            continue
        work = [(start, iter(sorted(known[start].needs & known.keys())))]
        number[start] = low[start] = len(number)
        path.append(start)
        on_path.add(start)
        while work:
            name, rest = work[-1]
            for other in rest:
                if other not in number:
                    number[other] = low[other] = len(number)
                    path.append(other)
                    on_path.add(other)
                    work.append((other, iter(sorted(known[other].needs & known.keys()))))
                    break
                if other in on_path:
                    low[name] = min(low[name], number[other])
            else:
                work.pop()
                if work:
                    above = work[-1][0]
                    low[above] = min(low[above], low[name])
                if low[name] == number[name]:
                    cut = path.index(name)
                    group = path[cut:]
                    del path[cut:]
                    on_path.difference_update(group)
                    found.append(group)
    return found
