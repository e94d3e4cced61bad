"""What the guards of the series cost: ``python -m tests.bench.guards [--release 0.29.0] [--rounds 12]``.

Three real servers on the CPU in one run, asked in turns: stock vLLM, the series with no flag, the
series with every guard on and none of them firing. The model is the tiny one, whose steps are so
short that a guard's share is larger than anywhere else. One stream is decoded at a time; the rate
is (tokens - 1) / (last - first), and processor time is that of the server's processes meanwhile.
Prints the Markdown of the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.runner.profiles import GUARDS_TRUTH, PROFILES
from tests.support import runner
from tests.support.runner_server import Server, serving

TOKENS = 1500
_HIGH = {
    "max_reasoning_tokens": 10 * TOKENS,
    "end_reasoning_loops": True,
    "no_stop_in_reasoning": True,
    "no_thought_in_content": True,
}
_REPETITION = {"max_pattern_size": 20, "min_count": 5}
ALL_ON = (
    *("--reasoning-config", json.dumps(_HIGH)),
    *("--default-repetition-detection", json.dumps(_REPETITION)),
    *GUARDS_TRUTH,
)


@dataclass
class Arm:
    """A server and what was measured on it, a value a round."""

    name: str
    server: Server
    rates: list[float] = field(default_factory=list)
    """Tokens a second of wall time."""
    work: list[float] = field(default_factory=list)
    """Milliseconds of processor time a token."""


def measure(arm: Arm) -> None:
    """One stream; a stop string that never comes makes the guards look at each token."""
    before = processor_seconds(arm.server.process.pid)
    first = last = 0.0
    body = {"model": "tiny", "stream": True, "max_tokens": TOKENS, "stop": ["never"]}
    body["messages"] = [{"role": "user", "content": "wander"}]
    with arm.server.post("/v1/chat/completions", body, stream=True) as answer:
        for line in answer.iter_lines():
            if b'"reasoning"' in line:
                last = time.perf_counter()
                first = first or last
    arm.rates.append((TOKENS - 1) / (last - first))
    arm.work.append((processor_seconds(arm.server.process.pid) - before) * 1000 / TOKENS)


def processor_seconds(session: int) -> float:
    """Of all processes of a session (proc(5), stat)."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8").rpartition(") ")[2].split()
        except OSError:
            continue  # it ended meanwhile
        if int(fields[3]) == session:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def table(arms: list[Arm]) -> str:
    base = arms[0]
    lines = [
        "| server | tokens a second | against stock | ms of processor a token | against stock |"
    ]
    lines.append("|---|---:|---:|---:|---:|")
    for arm in arms:
        rate, work = statistics.median(arm.rates), statistics.median(arm.work)
        # Round by round: what slows the machine down slows the neighbours too.
        speed = statistics.median(
            mine / theirs for mine, theirs in zip(arm.rates, base.rates, strict=True)
        )
        effort = statistics.median(
            mine / theirs for mine, theirs in zip(arm.work, base.work, strict=True)
        )
        lines.append(
            f"| {arm.name} | {rate:.1f} | {(speed - 1) * 100:+.2f} % "
            f"| {work:.3f} | {(effort - 1) * 100:+.2f} % |"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--release", default="0.29.0", choices=runner.RELEASES)
    parser.add_argument("--rounds", type=int, default=12)
    chosen = parser.parse_args()
    stock, patched = runner.stock(chosen.release), runner.patched(chosen.release)
    glm = PROFILES["stock"].flags
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        arms = [
            Arm(name, stack.enter_context(serving(engine, folder / str(number), *glm, *flags)))
            for number, (name, engine, flags) in enumerate(
                (
                    ("stock", stock, ()),
                    ("the series, no flag", patched, ()),
                    ("the series, all guards on", patched, ALL_ON),
                )
            )
        ]
        for arm in arms:
            measure(arm)
            arm.rates.clear()
            arm.work.clear()
        for number in range(chosen.rounds):
            for place in range(len(arms)):
                measure(arms[(place + number) % len(arms)])
    load = os.getloadavg()[0]
    print(f"vLLM {chosen.release}, {chosen.rounds} rounds of {TOKENS} tokens, load {load:.1f}:\n")
    print(table(arms))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
