"""The rank slicer beside `cp` and beside the straightforward way: ``python -m tests.bench.slice``.

    python -m tests.bench.slice --work FOLDER [--rounds N] [--gigabytes G] [--peer-python PYTHON]

Prints Markdown. FOLDER needs three times G gigabytes; what is made there is removed. PYTHON is an
interpreter with torch and safetensors; without one that row is left out. Each round runs every way
once, in turn, each onto a fresh folder of the same disk after a `sync`; figures are medians.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
from pathlib import Path

from tests.bench import targets
from tests.bench.measure import Cost, cost, hermetic, machine, median

PEER = Path(__file__).with_name("slice_peer.py")
PATCHQ = [sys.executable, "-m", "patchq.cli.main", "slice"]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--gigabytes", type=float, default=4.3)
    parser.add_argument("--peer-python", default="")
    return parser.parse_args()


def shape(gigabytes: float) -> targets.Shape:
    """Layers of the real target's size, as many experts as give `gigabytes`."""
    experts = max(1, round(gigabytes * 1e9 / (4 * 3 * 4096 * 2048 / 2)))
    return targets.Shape(4, experts, 4096, 2048, 4, 8, 10 << 20)


def plan(work: Path, env: dict[str, str], rounds: int) -> str:
    """`slice plan` on a header set like the real target's."""
    folder = work / "headers"
    targets.write(folder, targets.TARGET, full=False)
    words = [*PATCHQ, "plan", str(folder), "--tp", "2"]
    found = median([cost(words, cwd=work, env=env) for _ in range(rounds)])
    shutil.rmtree(folder)
    return (
        f"plan of 92 shards, 150,080 tensors, 165.9 GB (sparse): {found.wall:.2f} s"
        f" (processor {found.cpu:.2f} s), {found.largest:.0f} MB\n"
    )


def ways(source: Path, target: Path, peer: str) -> dict[str, list[str]]:
    """Commands that read `source` once and write as many bytes to `target`."""
    copying = shlex.join(["cp", "-r", str(source), str(target)])
    found = {
        "cp -r": ["cp", "-r", str(source), str(target)],
        "cp -r, then sync": ["sh", "-c", f"{copying} && sync -f {shlex.quote(str(target))}"],
    }
    for layout in ("shared", "per-rank"):
        words = [*PATCHQ, "run", str(source), str(target), "--tp", "2", "--layout", layout]
        found[f"patchq, {layout}, --no-sync"] = [*words, "--no-sync"]
        found[f"patchq, {layout}"] = words
    if peer:
        found["safetensors and torch"] = [peer, str(PEER), str(source), str(target), "2"]
    return found


def copies(work: Path, env: dict[str, str], chosen: argparse.Namespace) -> str:
    source, target = work / "source", work / "target"
    size = targets.write(source, shape(chosen.gigabytes), full=True, storage=False)
    commands = ways(source, target, chosen.peer_python)
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(chosen.rounds):
        for name, words in commands.items():
            shutil.rmtree(target, ignore_errors=True)
            os.sync()
            costs[name].append(cost(words, cwd=work, env=env))
    base = median(costs["cp -r"]).wall
    synced = median(costs["cp -r, then sync"]).wall
    lines = [
        f"{size / 1e9:.2f} GB of tensors in 8 shards, {chosen.rounds} rounds:\n",
        "| way | seconds: least, median, most | beside cp | beside cp, sync | processor, s | MB |",
        "|---|---|---|---|---|---|",
    ]
    for name, each in costs.items():
        walls = sorted(one.wall for one in each)
        middle = median(each)
        lines.append(
            f"| {name} | {walls[0]:.1f}, {middle.wall:.1f}, {walls[-1]:.1f} |"
            f" {middle.wall / base:.2f} | {middle.wall / synced:.2f} | {middle.cpu:.1f} | {middle.largest:.0f} |"
        )
    return "\n".join([*lines, "", verifying(work, source, target, env, size)])


def verifying(work: Path, source: Path, target: Path, env: dict[str, str], size: int) -> str:
    """`slice verify --against` beside reading the same bytes."""
    shutil.rmtree(target, ignore_errors=True)
    cost([*PATCHQ, "run", str(source), str(target), "--tp", "2"], cwd=work, env=env)
    reading = ["sh", "-c", f"cat {source}/*.safetensors {target}/*.safetensors > /dev/null"]
    words = [*PATCHQ, "verify", str(target), "--against", str(source)]
    rounds = [(cost(reading, cwd=work, env=env), cost(words, cwd=work, env=env)) for _ in range(3)]
    read, proved = median([one for one, _ in rounds]), median([one for _, one in rounds])
    return (
        f"verify --against reads {2 * size / 1e9:.1f} GB in {proved.wall:.1f} s"
        f" ({2 * size / 1e9 / proved.wall:.2f} GB/s, processor {proved.cpu:.1f} s,"
        f" {proved.largest:.0f} MB); cat takes {read.wall:.1f} s\n"
    )


def main() -> int:
    chosen = options()
    work = chosen.work.resolve() / "patchq-bench-slice"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        env = hermetic(work / "home") | {"PYTHONPATH": str(Path(__file__).parents[2])}
        about = machine(env)
        told = ("processor", "cores", "memory", "python", "load", "date")
        print(", ".join(f"{name} {about[name]}" for name in told) + "\n")
        print(plan(work, env, chosen.rounds))
        print(copies(work, env, chosen))
        print(f"load at the end: {os.getloadavg()[0]:.1f}")
    finally:
        shutil.rmtree(work)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
