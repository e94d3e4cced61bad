"""What the judgement of a queue costs, the first time and the second, step by step.

    python tests/bench/judged.py PROJECT NEW [--most 60] [--rounds 3]

PROJECT is a patchq project on a git source, such as the `queue-series` that `replay.py --work`
leaves; NEW is the release to judge it on. Nothing of the project is written. The first time has
nothing kept of the range; the second has what the first left in the store.
"""

from __future__ import annotations

import sys
from pathlib import Path

if not __package__:
    # In place of this folder, in which `bisect` is not the library's.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import argparse
import os
import shutil
import statistics
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from patchq import config
from patchq.carry import workspace
from patchq.carry.canonical import fold_any, readable, side
from patchq.carry.causes import with_causes
from patchq.carry.fold import Carry
from patchq.carry.history import Gatherer
from patchq.carry.ranges import Range, opened
from patchq.judge.model import Known
from patchq.queue.patch import Patch
from tests.bench.table import rows

Result = TypeVar("Result")
STEPS = ("history", "trees and verdicts", "causes of the conflicts")
KEPT = ("patchq-log", "patchq-lines", "patchq-answers")


def main() -> int:
    """Judge twice a round, print the medians."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("project", type=Path)
    parser.add_argument("new")
    parser.add_argument("--most", type=int, help="only the first patches of the series")
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    queue = workspace.read_queue(config.find_project(chosen.project.resolve()), None)
    times: list[list[list[tuple[float, float]]]] = [[], []]
    said = ""
    for _ in range(chosen.rounds):
        for turn in (0, 1):
            said, spent = judged(queue, chosen.new, chosen.most, first=turn == 0)
            times[turn].append(spent)
    print(f"{said}; seconds of wall (processor) time, median of {chosen.rounds}\n")
    body = [
        [step, *(_middle([each[place] for each in turn]) for turn in times)]
        for place, step in enumerate(STEPS)
    ]
    print(rows(["step", "first", "second"], body))
    return 0


def judged(
    queue: workspace.Queue, new: str, most: int | None, *, first: bool
) -> tuple[str, list[tuple[float, float]]]:
    """What was judged in words, and (wall, processor) seconds of each of STEPS."""
    with workspace.upstream_of(queue, offline=True) as upstream:
        base, target = workspace.base_of(queue, upstream), upstream.release(new)
        store = upstream.store
        for name in KEPT if first else ():
            kept = store.path / name
            kept.unlink(missing_ok=True) if kept.is_file() else shutil.rmtree(kept, True)
        with opened(queue, base, target, store, offline=True) as range_:
            if not isinstance(range_, Range):
                raise SystemExit(f"no history: {range_}")
            patches = readable(store, base.tree, queue.series.applied[:most])
            gatherer = Gatherer(queue.config, queue.state.pulls, range_)
            known, reading = _timed(lambda: gatherer(patches))

            def told(_: Sequence[Patch]) -> dict[str, Known]:
                return known

            def go() -> Carry:
                return fold_any(store, side(base), side(target), patches, knowing=told)

            carry, folding = _timed(go)
            _, finding = _timed(lambda: with_causes(store, carry, range_))
            said = f"{len(patches)} patches, {len(range_.commits)} commits, {len(carry.asks)} stops"
    return said, [reading, folding, finding]


def _timed(work: Callable[[], Result]) -> tuple[Result, tuple[float, float]]:
    wall, before = time.perf_counter(), os.times()
    result = work()
    after = os.times()
    # The processes that were waited for count, git's own among them.
    spent = sum(after[:4]) - sum(before[:4])
    return result, (time.perf_counter() - wall, spent)


def _middle(spent: Sequence[tuple[float, float]]) -> str:
    wall, cpu = (statistics.median(each) for each in zip(*spent, strict=True))
    return f"{wall:.2f} ({cpu:.2f})"


if __name__ == "__main__":
    raise SystemExit(main())
