"""The watch for spinning on a labelled set: ``python -m tests.bench.spin``.

    python -m tests.bench.spin [--characters N] [--loops N] [--archives FOLDER]

Prints Markdown: what is found, what is alarmed for nothing, how late, at what cost, for the half of
the set that the thresholds were set on and for the one held out. N characters of each real source,
N loops of each kind. FOLDER: vLLM's source archive lies or comes there; without it vLLM is left out.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import statistics
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from patchq.smoke.spin import Limits, Spin, Watch
from tests.bench.spin_loops import KINDS, Chain, Loop
from tests.bench.spin_said import looping, sound_answers
from tests.bench.spin_texts import WRITTEN, real

VERSION = "0.29.0"
HALVES = ("set on", "held out")
_TOKEN = re.compile(r"\s?\w{1,6}|\s{1,8}|[^\w\s]{1,3}")
_SOURCES = ("GPL-2", "MPL-2.0")
_LICENCES = Path("/usr/share/common-licenses")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--characters", type=int, default=2_000_000)
    parser.add_argument("--loops", type=int, default=200)
    parser.add_argument("--archives", type=Path)
    chosen = parser.parse_args()
    vllm = None
    if chosen.archives:
        from tests.bench.releases import archive_of

        vllm = archive_of(chosen.archives, VERSION)
    print(measure(chosen.characters, chosen.loops, vllm))
    print(f"load at the end: {os.getloadavg()[0]:.1f}")
    return 0


def measure(characters: int, loops: int, vllm: Path | None = None) -> str:
    """Both tables."""
    lines = [
        "| half | spins | texts | found | within 3 copies, or 512 characters | copies until found: median, most |",
        "|---|---|---:|---:|---:|---:|",
    ]
    chains = [
        Chain((_LICENCES / name).read_text("utf-8"), 2 + n) for n, name in enumerate(_SOURCES)
    ]
    for half, name in enumerate(HALVES):
        lines += [f"| {name} | {row}" for row in spinning(half, chains[half], loops)]
    lines += [
        "",
        "| half | does not spin | outputs | tokens | false alarms | microseconds a token |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for half, name in enumerate(HALVES):
        rows = sound(half, chains[half], characters, min(50, loops), vllm)
        lines += [f"| {name} | {row}" for row in rows]
    return "\n".join([*lines, ""])


def spinning(half: int, chain: Chain, many: int) -> Iterator[str]:
    """A row for each kind of loop."""
    for kind, make in KINDS.items():
        yield _found(kind, make(half, chain, random.Random(half), many))
    yield _found("said by a model", looping(half))
    pick, limits = random.Random(half), Limits()
    texts = [chain.wander(pick, limits.reasoning * 2) for _ in range(many // 100 + 1)]
    ends = [watched(text, reasoning=True)[1] for text in texts]
    yield f"endless thought | {len(ends)} | {sum(map(bool, ends)) / len(ends):.1%} | - | - |"


def _found(kind: str, loops: Iterable[Loop]) -> str:
    total = found = soon = 0
    copies = []
    for loop in loops:
        total += 1
        read, spin = watched(loop.text)
        if spin is None or read <= loop.begins:
            print(f"  missed: {kind}: {loop.text[loop.begins :][:80]!r} {spin}")
            continue
        found += 1
        late = read - loop.begins
        soon += late <= max(3 * loop.period, 512)
        copies.append(late / loop.period)
    middle = f"{statistics.median(copies):.1f}, {max(copies):.1f}" if copies else "-"
    return (
        f"{kind} | {total} | {found / max(total, 1):.1%} | {soon / max(total, 1):.1%} | {middle} |"
    )


def sound(
    half: int, chain: Chain, characters: int, written: int, vllm: Path | None
) -> Iterator[str]:
    """A row for each source, and their sum."""
    words = [token.strip() for token in chain.tokens if token.strip().isalpha()]
    pick = random.Random(half)
    outputs: dict[str, Iterable[str]] = dict(real(half, characters, vllm))
    outputs["said by a model"] = sound_answers(half)
    for name, write in WRITTEN[half].items():
        outputs[f"written: {name}"] = [write(words, pick) for _ in range(written)]
    sums = [0, 0, 0, 0.0]
    for name, texts in outputs.items():
        row = [0, 0, 0, 0.0]
        for text in texts:
            tokens, seconds = len(_TOKEN.findall(text)), time.process_time()
            _, spin = watched(text)
            row = [
                row[0] + 1,
                row[1] + tokens,
                row[2] + bool(spin),
                row[3] + time.process_time() - seconds,
            ]
            if spin:
                print(f"  alarm: {name}: {spin.says}")
        if row[0]:
            yield f"{name} | {_figures(row)}"
        sums = [a + b for a, b in zip(sums, row, strict=True)]
    yield f"**all** | {_figures(sums)}"


def _figures(row: list[float]) -> str:
    outputs, tokens, alarms, seconds = row
    return f"{outputs:,} | {tokens:,} | {alarms} | {seconds / tokens * 1e6:.1f} |"


def watched(text: str, *, reasoning: bool = False) -> tuple[int, Spin | None]:
    """Characters read until it is found, and what is found."""
    watch, read = Watch(), 0
    for token in _TOKEN.findall(text):
        read += len(token)
        if watch.feed(token, reasoning=reasoning):
            break
    return read, watch.end()


if __name__ == "__main__":
    raise SystemExit(main())
