"""All benchmarks in one run: ``python -m tests.bench`` prints the Markdown of the figures.

Takes the options of tests/bench/carry.py.
"""

from __future__ import annotations

import json
import shlex
import sys

from tests.bench import carry, scale, table
from tests.bench import work as hand
from tests.bench.ours import missing


def _shown(words: list[str]) -> list[str]:
    """The options that change the work; folders are this machine's own."""
    shown = []
    rest = iter(words)
    for word in rest:
        name, has_value, _ = word.partition("=")
        if name in ("--archives", "--work", "--json"):
            if not has_value:
                next(rest, None)
        else:
            shown.append(word)
    return shown


def main() -> int:
    """Measure everything, print it as one text, write the JSON."""
    chosen = carry.options(about=__doc__)
    with carry.workplace(chosen) as work:
        found = carry.compare(chosen, work)
        found["start"] = scale.startup(chosen, work)
        found["curve"] = scale.curve(chosen, work)
        if not missing():
            found["work"] = hand.compare(chosen, work)
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1) + "\n")
    words = ["python", "-m", "tests.bench", *_shown(sys.argv[1:])]
    print(f"`{shlex.join(words)}`\n")
    print(table.machine(found["machine"]))
    print(table.carry(found))
    print(table.startup(found["start"]))
    print(table.curve(found["curve"]))
    if "work" in found:
        print(hand.shown(found["work"]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
