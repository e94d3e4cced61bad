"""How often `patchq compare` is right: ``python -m tests.bench.compare [--trace FILE] [--runs N]``.

    python -m tests.bench.compare [--runs N] [--noise X] [--drift X] [--rounds N] [--trace FILE]

Prints Markdown. Real latencies are dealt out again as comparisons: for each cell four visits that followed
one another become A B B A, in the next round B A A B, and so on. A comparison is made of stretches of
STRETCH rounds, each from anywhere in the recording, for all cells from the same place. So bursts, tails,
and what hangs together in time and among cells are those of the recording; nothing is drawn from a
distribution. A-A: B is what was recorded; with a slowdown all of B's times are longer by it, and its decode
rate lower. `--noise 0.1` leaves a tenth of each figure's distance from its median (of the logarithms): a
quieter machine with the same bursts. `--drift 0.1`: all times rise and fall by a tenth besides, in a wave
of 8 to 64 visits. A trace is made by

    patchq compare URL URL --context 512 --concurrency 1 --tokens 24 --rounds 100 --measured FILE
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from patchq.smoke import kept
from patchq.smoke.bench import Bench, Visit, order
from patchq.smoke.compare import compare
from patchq.smoke.load import METRICS, Cell, Metric, Taken, value
from patchq.smoke.stats import Verdict

TRACE = Path(__file__).parent / "recorded.json"
"""On 2 cores that did little else."""
BUSY = Path(__file__).parent / "recorded-busy.json"
"""On 2 cores that did ten other things."""
STRETCH = 4
_VISITS = 4
"""Of a cell, in a round."""


@dataclass(frozen=True)
class World:
    """What a comparison is made in: a recording, the share of its noise, and a drift on top."""

    trace: Path = TRACE
    noise: float = 1.0
    drift: float = 0.0


@lru_cache
def turns_of(trace: Path) -> tuple[Bench, tuple[tuple[Visit, ...], ...]]:
    """The recording; and the first visits of all cells, the second ones, and so on."""
    bench = kept.read(trace)
    cells: dict[Cell, list[Visit]] = {}
    for visit in sorted(bench.visits, key=lambda visit: visit.taken[0].began):
        cells.setdefault(visit.cell, []).append(visit)
    return bench, tuple(zip(*cells.values(), strict=False))


@lru_cache
def middles(trace: Path) -> dict[tuple[Cell, Metric], float]:
    """The median of each figure over the whole recording."""
    found: dict[tuple[Cell, Metric], list[float]] = {}
    for visit in (visit for visits in turns_of(trace)[1] for visit in visits):
        for metric in METRICS:
            if (figure := value(visit.taken, metric)) is not None:
                found.setdefault((visit.cell, metric), []).append(figure)
    return {key: statistics.median(figures) for key, figures in found.items()}


def retold(world: World, visit: Visit, longer: float) -> Taken:
    """What the visit gives in that world, where its times are `longer` (a factor)."""
    figures: dict[Metric, float | None] = dict.fromkeys(METRICS)
    for metric in METRICS:
        recorded = value(visit.taken, metric)
        if recorded is not None:
            middle = middles(world.trace)[visit.cell, metric]
            by = 1 / longer if metric == "decode" else longer
            figures[metric] = by * middle * (recorded / middle) ** world.noise
    return Taken(visit.taken[0].began, figures["decode"], figures["ttft"], figures["wall"])


def dealt(world: World, rounds: int, slowdown: float, chance: random.Random) -> Bench:
    """A comparison of `rounds` rounds, from places that `chance` gives.

    The recording is a circle: its end is followed by its beginning.
    """
    recorded, turns = turns_of(world.trace)
    turns = turns[: len(turns) - len(turns) % _VISITS]
    wave, phase = chance.uniform(8, 64), chance.uniform(0, math.tau)
    at, visits = 0, []
    for number in range(rounds):
        if number % STRETCH == 0:
            at = _VISITS * chance.randrange(len(turns) // _VISITS)
        for step, (place, turn) in enumerate(order(2, number), _VISITS * number):
            moved = math.exp(world.drift * math.sin(phase + math.tau * step / wave))
            for visit in turns[at % len(turns)]:
                longer = moved * (1 + slowdown if place == 1 else 1)
                taken = retold(world, visit, longer)
                visits.append(Visit(place, number, turn, visit.cell, (taken,)))
            at += 1
    plan, side = replace(recorded.plan, rounds=rounds), recorded.sides[0]
    return Bench("dealt", plan, (replace(side, label="A"), replace(side, label="B")), tuple(visits))


def verdicts(
    world: World, rounds: int, slowdown: float, runs: int, *, seed: int = 0
) -> Counter[Verdict]:
    """What so many comparisons come to, each as a whole."""
    chance = random.Random(seed)
    found: Counter[Verdict] = Counter()
    for _ in range(runs):
        bench = dealt(world, rounds, slowdown, chance)
        found[compare((bench, 0), (bench, 1)).verdict] += 1
    return found


def shown(found: Counter[Verdict], words: Sequence[Verdict]) -> list[str]:
    total = found.total()
    return [f"{100 * found[word] / total:.1f} %" for word in words]


def main() -> int:
    from tests.bench.table import rows

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--trace", type=Path, default=TRACE)
    parser.add_argument("--noise", type=float, nargs="+", default=[1.0, 0.5, 0.2, 0.1])
    parser.add_argument("--drift", type=float, default=0.0)
    parser.add_argument("--rounds", type=int, nargs="+", default=[16, 24, 32])
    options = parser.parse_args()
    words: tuple[Verdict, ...] = ("worse", "better", "same", "inconclusive")
    _, turns = turns_of(options.trace)
    body = []
    for noise in options.noise:
        world = World(options.trace, noise, options.drift)
        for slowdown in (0.0, 0.05, 0.10):
            for rounds in options.rounds:
                found = verdicts(world, rounds, slowdown, options.runs)
                body.append([f"{noise:g}", f"{slowdown:.0%}", str(rounds), *shown(found, words)])
    print(f"{len(turns)} visits to each of {len(turns[0])} cells recorded,", end=" ")
    print(f"drift {options.drift:g}, {options.runs} comparisons a line\n")
    print(rows(["noise", "B slower by", "rounds", *words], body))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
