"""What `patchq bisect` takes beside `git bisect run`: ``python -m tests.bench.bisect [--seeds N]``.

Prints Markdown. Both look for the same culprit among 64 patches that were made one after the other, on the
same subsets: what can be built and what a run shows is the same for both where they ask for the same. git
has a commit a patch and tries what its order has; it knows no needs, no rates, and no going back: its script
runs a commit up to TIMES times and stops when one run is bad. Every figure is counted, none is timed but the
last.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from patchq.bisect.chances import Question
from tests.bench.table import rows
from tests.bisect.worlds import World, search, world
from tests.support.history import clean_env

COUNT = 64
CASES = (
    ("every run shows it, everything builds", {"rate": 1.0, "broken": 0.0, "hidden": 0}, 1, 1),
    ("every run shows it, some do not build", {"rate": 1.0}, 1, 1),
    ("60 % of runs show it, everything builds", {"broken": 0.0, "hidden": 0}, 20, 8),
    ("60 % of runs show it, some do not build", {}, 20, 8),
)
"""What it is called, the world, patchq's --repeat, and git's runs of a commit."""
SCRIPT = 'printf x >> "$LOG"; exit $(cat code)'


@dataclass
class Took:
    """Of one search. tried: subsets that were asked for; builds: those that could be built."""

    tried: int
    builds: int
    runs: int
    right: bool
    several: bool
    seconds: float


def ours(there: World, repeat: int) -> Took:
    began = time.perf_counter()
    found = search(there, Question(there.moves, repeat=repeat))
    name = found.name
    return Took(
        found.attempts,
        found.builds,
        found.runs,
        name == there.culprit,
        name is None,
        time.perf_counter() - began,
    )


def git(there: World, times: int, folder: Path) -> Took:
    """`git bisect run`, with a commit for each prefix of the moves that says how its script ends."""
    dice = random.Random(there.seed + 2)
    names = [move.name for move in there.moves]
    codes, runs = [], []
    for place in range(len(names) + 1):
        subset = frozenset(names[:place])
        if not there.builds(subset):
            codes.append(125)
            runs.append(0)
            continue
        shown = [there.culprit in subset and dice.random() < there.rate for _ in range(times)]
        bad = True in shown
        codes.append(int(bad))
        runs.append(shown.index(True) + 1 if bad else times)
    env = clean_env(folder, LOG=str(folder / "log"))

    def call(*args: str, feed: bytes | None = None) -> str:
        done = subprocess.run(["git", *args], cwd=folder, env=env, input=feed, capture_output=True)
        return done.stdout.decode()

    call("init", "-q", "-b", "main")
    call("fast-import", "--quiet", feed=b"".join(commits(codes)))
    call("reset", "-q", "--hard", "main")
    shas = call("rev-list", "--reverse", "main").split()
    call("bisect", "start", shas[-1], shas[0])
    began = time.perf_counter()
    said = call("bisect", "run", "sh", "-c", SCRIPT)
    seconds = time.perf_counter() - began
    visited = [
        shas.index(line.split()[-1])
        for line in call("bisect", "log").splitlines()
        if line.startswith("git bisect ") and "start" not in line
    ]
    built = [place for place in visited if codes[place] != 125]
    first = shas[names.index(there.culprit) + 1]
    several = "is the first bad commit" not in said
    return Took(
        len(visited),
        len(built),
        sum(runs[place] for place in built),
        f"{first} is the first bad commit" in said,
        several,
        seconds,
    )


def commits(codes: list[int]) -> Iterator[bytes]:
    for place, code in enumerate(codes):
        yield b"commit refs/heads/main\ncommitter A <a@example.com> %d +0000\n" % (place + 1)
        text = b"%d\n" % code
        mark = b"%d\n" % place
        yield b"data 1\nx\n"
        yield b"M 100644 inline code\ndata %d\n%s\n" % (len(text), text)
        yield b"M 100644 inline place\ndata %d\n%s\n" % (len(mark), mark)


def row(case: str, who: str, took: list[Took]) -> list[str]:
    def spread(values: list[int]) -> str:
        found = sorted(values)
        return f"{found[len(found) // 2]} ({found[0]} to {found[-1]})"

    return [
        case,
        who,
        spread([each.tried for each in took]),
        spread([each.builds for each in took]),
        spread([each.runs for each in took]),
        f"{sum(each.right for each in took) / len(took):.1%}",
        f"{sum(each.several for each in took) / len(took):.1%}",
        f"{sum(each.seconds for each in took) / len(took) * 1000:.0f}",
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=300)
    seeds = range(parser.parse_args().seeds)
    table = []
    for case, about, repeat, times in CASES:
        worlds = [world(seed, COUNT, **about) for seed in seeds]  # type: ignore[arg-type]
        mine = [ours(each, repeat) for each in worlds]
        theirs = []
        for each in worlds:
            with tempfile.TemporaryDirectory() as folder:
                theirs.append(git(each, times, Path(folder)))
        table += [row(case, "patchq bisect", mine), row("", "git bisect run", theirs)]
    heads = ["case", "", "subsets tried", "of them built", "runs", "right", "cannot tell", "ms"]
    print(f"{COUNT} patches, {len(seeds)} seeds; median (least to most)\n")
    print(rows(heads, table))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
