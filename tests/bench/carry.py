"""The carry of a long series beside the peers, on real releases of vLLM.

Run ``python tests/bench/carry.py``. Each way does the same work and its final tree is compared
with git's; source archives that are missing are fetched from the package index.
"""

from __future__ import annotations

import sys
from pathlib import Path

if not __package__:
    # In place of this folder, in which `bisect` is not the library's.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.bench import table
from tests.bench.measure import hermetic, machine, median
from tests.bench.ours import OURS, missing
from tests.bench.peers import PEERS, Env, Outcome, Way
from tests.bench.releases import repository
from tests.bench.series import KINDS, Case, case

STEPS = "0.29.0:0.30.0,0.29.0:0.33.0"


@dataclass(frozen=True)
class Options:
    """What the command line says; `steps` are (old, new) releases."""

    archives: Path
    work: Path | None
    patches: int
    steps: tuple[tuple[str, str], ...]
    kinds: tuple[str, ...]
    peers: tuple[str, ...]
    ours: tuple[str, ...]
    repeat: int
    json: Path | None

    @property
    def versions(self) -> list[str]:
        """All releases that the steps name, oldest first."""
        named = {version for step in self.steps for version in step}
        return sorted(named, key=lambda version: [int(part) for part in version.split(".")])


def options(argv: Sequence[str] | None = None, about: str | None = None) -> Options:
    """Read the command line; a wrong word ends the program with argparse's sentence."""
    words = argparse.ArgumentParser(description=about or __doc__)
    words.add_argument(
        "--archives",
        type=Path,
        metavar="DIR",
        help="where vllm-VERSION.tar.gz are, or are fetched to (default: patchq's cache folder)",
    )
    words.add_argument(
        "--work", type=Path, help="keep what was prepared here (default: throw away)"
    )
    words.add_argument("--patches", type=int, default=200)
    words.add_argument("--steps", default=STEPS, help=f"OLD:NEW,... (default {STEPS})")
    words.add_argument("--kinds", default="random,changed", help=", ".join(KINDS))
    words.add_argument("--peers", default=",".join(PEERS), help="which, or nothing: ''")
    words.add_argument("--ours", default=",".join(OURS), help="which, or nothing: ''")
    words.add_argument("--repeat", type=int, default=3)
    words.add_argument("--json", type=Path, help="write every figure here")
    said = words.parse_args(argv)
    steps = [tuple(step.split(":")) for step in _list(said.steps)]
    for name, chosen, known in (
        ("--kinds", said.kinds, KINDS),
        ("--peers", said.peers, PEERS),
        ("--ours", said.ours, OURS),
    ):
        for word in _list(chosen):
            if word not in known:
                words.error(f"{name}: {word!r} is none of {', '.join(known)}")
    if any(len(step) != 2 for step in steps):
        words.error("--steps: each is OLD:NEW")
    return Options(
        (said.archives or _cache()).resolve(),
        said.work and said.work.resolve(),
        said.patches,
        tuple((step[0], step[1]) for step in steps),
        _list(said.kinds),
        _list(said.peers),
        _list(said.ours),
        said.repeat,
        said.json,
    )


def _cache() -> Path:
    from patchq.config import cache_dir

    return cache_dir() / "bench"


def _list(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split(",") if word)


@contextmanager
def workplace(chosen: Options) -> Iterator[Path]:
    """The folder to prepare in: the user's, kept, or one that goes away."""
    if chosen.work:
        chosen.work.mkdir(parents=True, exist_ok=True)
        yield chosen.work
    else:
        with tempfile.TemporaryDirectory(prefix="patchq-bench-") as folder:
            yield Path(folder)


def say(text: str) -> None:
    """Progress, to stderr."""
    print(text, file=sys.stderr, flush=True)


def measure(
    work: Case, ways: Mapping[str, tuple[str, Way]], place: Path, env: Env, repeat: int
) -> dict[str, Any]:
    """Run every way `repeat` times, in turns; memory of ours in a further run of its own."""
    runs: dict[str, list[Outcome]] = {name: [] for name in ways}
    for turn in range(repeat):
        for name, (_, way) in ways.items():
            got = way(work, place, env, False)
            runs[name].append(got)
            say(f"  {work.name} {name} {turn + 1}/{repeat}: {got.cost.wall:.2f} s {got.note}")
    found: dict[str, Any] = {}
    for name, (title, way) in ways.items():
        whole = way(work, place, env, True).cost.whole if name in OURS else 0.0
        middle = median([got.cost for got in runs[name]])
        found[name] = {
            "title": title,
            "wall": middle.wall,
            "cpu": middle.cpu,
            "walls": [got.cost.wall for got in runs[name]],
            "largest_mb": middle.largest,
            "whole_mb": whole,
            "same": all(got.same for got in runs[name]),
            "note": runs[name][-1].note,
            "parts": runs[name][-1].parts,
        }
    return found


def compare(chosen: Options, work: Path) -> dict[str, Any]:
    """Every case by every way: the figures, ready for JSON and for `table.carry`."""
    env = hermetic(work / "home")
    place = work / "place"
    place.mkdir(exist_ok=True)
    say("releases: " + " ".join(chosen.versions))
    releases = repository(work, chosen.archives, chosen.versions, env)
    ways: dict[str, tuple[str, Way]] = {name: PEERS[name] for name in chosen.peers}
    why = missing()
    if why and chosen.ours:
        say(why)
    elif chosen.ours:
        ways |= {name: OURS[name] for name in chosen.ours}
    cases = []
    for kind in chosen.kinds:
        for old, new in chosen.steps:
            say(f"case: {chosen.patches} patches, {KINDS[kind]}, {old} to {new}")
            one = case(work, releases, kind, old, new, chosen.patches, env)
            facts: dict[str, Any] = {"kind": kind, "about": KINDS[kind], "old": old, "new": new}
            facts |= {"patches": one.count, "files": one.files, "tree": one.tree}
            cases.append(facts | {"ways": measure(one, ways, place, env, chosen.repeat)})
    return {"machine": machine(env), "repeat": chosen.repeat, "cases": cases}


def main() -> int:
    """Measure, print the tables, write the JSON."""
    chosen = options()
    with workplace(chosen) as work:
        found = compare(chosen, work)
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1) + "\n")
    print(table.machine(found["machine"]))
    print(table.carry(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
