"""What moved between two runners, and what was seen of the subsets that were tried."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

MoveKind = Literal[
    "patch",
    "base",
    "commit",
    "component",
    "template",
    "model",
    "draft",
    "profile",
    "requirements",
]


@dataclass(frozen=True)
class Move:
    """One thing in which runner B differs from runner A. `name` is its identity within a bisection.

    needs: names of other moves without which it cannot stand; the relation may be transitive or
    not, and may not have a cycle (what goes only together is one move).
    """

    name: str
    kind: MoveKind
    says: str
    url: str | None = None
    needs: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Tried:
    """A, with these moves made: how many runs showed the fault and how many did not.

    skipped: why there is no answer (it cannot be built, or CMD said so); then nothing is known of
    the fault there, and no move is blamed. `runs` of both kinds are 0 then, as a rule.
    """

    moves: frozenset[str]
    bad: int = 0
    good: int = 0
    skipped: str | None = None

    @property
    def runs(self) -> int:
        return self.bad + self.good


def closed(moves: Iterable[Move], subset: frozenset[str]) -> frozenset[str]:
    """`subset` with everything that it needs, and what that needs."""
    needs = {move.name: move.needs for move in moves}
    found: set[str] = set()
    todo = list(subset)
    while todo:
        name = todo.pop()
        if name not in found and name in needs:
            found.add(name)
            todo.extend(needs[name])
    return frozenset(found)
