"""What a probe is, what came of it, and what a run of probes comes to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from patchq.errors import Incomplete, ProofFailed
from patchq.smoke.asking import Asking
from patchq.smoke.identity import Identity
from patchq.smoke.model import About

State = Literal["passed", "failed", "not run", "left out"]
"""`not run`: it could not be asked, or there was no whole answer; `left out`: nothing here says
that it applies. Neither has passed."""


@dataclass(frozen=True)
class Probe:
    """`asks`, `rule` and `stands_for` are for people; docs/smoke.md has more.

    `run` returns what it found, a sentence without a full stop, or raises one of the above.
    `alone`: it reads counters of the whole server, so nothing else may ask meanwhile.
    `lasts`: as long as the others that are asked together, or as long as the whole run. `stops`:
    where it fails nothing more is asked, and this is said of what was not.
    """

    name: str
    asks: str
    rule: str
    stands_for: str
    run: Callable[[Asking], str]
    alone: bool = False
    lasts: Literal["", "together", "throughout"] = ""
    stops: str = ""


@dataclass(frozen=True)
class Outcome:
    """How a probe ended. `evidence` and `exchanges` are JSON values; `seconds` is its wall time.

    `broke`: it failed because the server answered that it is broken (5xx), not by its rule.
    """

    probe: Probe
    state: State
    says: str
    seconds: float = 0.0
    evidence: Mapping[str, Any] | None = None
    exchanges: tuple[Mapping[str, Any], ...] = ()
    broke: bool = False


@dataclass(frozen=True)
class Report:
    """All probes in their order. `seed` gives the same questions again.

    `rounds`: how often they were asked, each time with the seed after; `outcomes` is then the worst
    of each. `runner`: what ran, None for a server that was asked by its address.
    """

    about: About
    profile: str | None
    seed: int
    outcomes: tuple[Outcome, ...]
    rounds: int = 1
    runner: Identity | None = None

    @property
    def exit_code(self) -> int:
        """5 if any probe failed, 6 if any was not run, else 0."""
        states = {outcome.state for outcome in self.outcomes}
        if "failed" in states:
            return ProofFailed.exit_code
        return Incomplete.exit_code if "not run" in states else 0


_WORST: tuple[State, ...] = ("failed", "not run", "passed", "left out")


def merged(rounds: Sequence[Report]) -> Report:
    """Several rounds of the same probes as one report."""
    first = rounds[0]
    if len(rounds) == 1:
        return first
    found = []
    for place in range(len(first.outcomes)):
        of = [report.outcomes[place] for report in rounds]
        number = min(range(len(of)), key=lambda each: (_WORST.index(of[each].state), each))
        worst = of[number]
        times = sum(each.state == worst.state for each in of)
        where = f"round {number + 1} of {len(of)} (--seed {rounds[number].seed}): "
        if worst.state in ("failed", "not run"):
            says = f"{times} of {len(of)} rounds; {where}{worst.says}"
        else:
            says = f"in {len(of)} rounds; {worst.says}"
        seconds = round(sum(each.seconds for each in of), 3)
        found.append(replace(worst, says=says, seconds=seconds))
    return replace(first, outcomes=tuple(found), rounds=len(rounds))


class View(Protocol):
    """Is told how the probes go on, from the caller's own thread."""

    def begins(self, probe: Probe) -> None:
        """It is being asked."""

    def ends(self, outcome: Outcome) -> None:
        """It is done."""


class Blind:
    """Sees nothing."""

    def begins(self, probe: Probe) -> None:
        return None

    def ends(self, outcome: Outcome) -> None:
        return None
