"""`patchq doctor` on checkpoints of the real target's size: ``python -m tests.bench.doctor``.

    python -m tests.bench.doctor --work FOLDER [--rounds N]

Prints Markdown. The checkpoints are sparse: 92 shards, 155,826,782,208 bytes of trellis, headers and
JSON files as they would be; not cut, and cut for two ranks in both layouts. FOLDER needs some 400 MB;
what is made there is removed. Beside each stands what reading the same headers alone costs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from pathlib import Path

from patchq.exl3.layout import LAYOUTS
from tests.bench import targets
from tests.bench.measure import cost, hermetic, machine, median
from tests.support.history import History
from tests.support.kit import bare_repository

PATCHQ = [sys.executable, "-m", "patchq.cli.main"]
HEADERS = """
import json, pathlib, sys
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.safetensors")):
    with path.open("rb") as file:
        json.loads(file.read(int.from_bytes(file.read(8), "little")))
json.loads((pathlib.Path(sys.argv[1]) / "model.safetensors.index.json").read_bytes())
"""
CAPABILITIES = {
    "schema": "patchq.capabilities/1",
    "exl3": {"codebooks": ["mcg"], "bits": [4], "layouts": list(LAYOUTS), "ranks": [2]},
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    work = chosen.work.resolve() / "patchq-bench-doctor"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        env = hermetic(work / "home") | {"PYTHONPATH": str(Path(__file__).parents[2])}
        about = machine(env)
        told = ("processor", "cores", "memory", "python", "load", "date")
        print(", ".join(f"{name} {about[name]}" for name in told) + "\n")
        print(measure(work, env, chosen.rounds))
        print(f"load at the end: {os.getloadavg()[0]:.1f}")
    finally:
        shutil.rmtree(work)
    return 0


def measure(
    work: Path, env: dict[str, str], rounds: int, shape: targets.Shape = targets.TARGET
) -> str:
    """A row for each checkpoint; the exit status says whether what is wrong with it was found."""
    root = project(work, env)
    targets.write(work / "plain", shape, full=False)
    for layout in LAYOUTS:
        targets.write_cut(work / layout, work / "plain", 2, layout)
    lines = [
        "| checkpoint | exit status | seconds: median, processor | MB | json alone, s |",
        "|---|---|---|---|---|",
    ]
    for name, expected in (("plain", 5), ("shared", 0), ("per-rank", 0)):
        words = [*PATCHQ, "doctor", "--model", str(work / name), "--tp", "2"]
        costs = [cost(words, cwd=root, env=env, ok=not expected) for _ in range(rounds)]
        peers = [
            cost([sys.executable, "-c", HEADERS, str(work / name)], cwd=work, env=env)
            for _ in range(rounds)
        ]
        middle, peer = median(costs), median(peers)
        lines.append(
            f"| {name} | {middle.code} | {middle.wall:.2f}, {middle.cpu:.2f} |"
            f" {middle.largest:.0f} | {peer.wall:.2f} |"
        )
    return "\n".join([*lines, ""])


def project(work: Path, env: dict[str, str]) -> Path:
    """A queue whose series brings a loader that reads what is cut for two ranks."""
    upstream = History(work / "upstream.git")
    upstream.commit().write("a.txt", b"1\n").tag("v1")
    topic = upstream.branch("loader", at="v1").commit("Loader")
    topic.write("patchq-capabilities.json", json.dumps(CAPABILITIES).encode())
    upstream.save()
    root = bare_repository(work / "project")
    for words in (
        ["init", "demo", "--git", str(upstream.path), "--base", "v1"],
        ["import", "--git", str(upstream.path), "v1..loader"],
    ):
        cost([*PATCHQ, *words], cwd=root, env=env)
    return root


if __name__ == "__main__":
    raise SystemExit(main())
