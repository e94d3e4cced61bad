"""The page of a queue: how long it takes to make, and how soon a click is answered.

    python -m tests.bench.page [--rounds N] [--patches N] [--releases N]

Prints Markdown: size, time to make, time from opening to done, and of each kind of click the median
and the longest of N, until the browser has laid the page out anew. Needs Chromium.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from patchq.render.page import files
from tests.render import pages
from tests.support.browser import Browser, browser

FIELD = """
const field = document.querySelector("[data-of={of}] {where}");
field.value = "{value}";
field.dispatchEvent(new Event("input", {{ bubbles: true }}));
"""
CLICKS = {
    "words": FIELD.format(of="patches", where="input", value="exl3"),
    "words taken back": FIELD.format(of="patches", where="input", value=""),
    "state": FIELD.format(of="patches", where=".pick", value="needed"),
    "every state": FIELD.format(of="patches", where=".pick", value=""),
    "order by age": FIELD.format(of="patches", where=".order", value="age"),
    "order of the series": FIELD.format(of="patches", where=".order", value=""),
    "releases by date": 'document.querySelectorAll("table.sort th button")[1].click();',
    "a patch unfolded": 'document.querySelector("#patches summary").click();',
}
TIMED = """
(async () => {
  await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  const from = performance.now();
  %s
  document.body.offsetHeight;
  return performance.now() - from;
})()
"""
LOADED = "(e => e.loadEventEnd - e.startTime)(performance.getEntriesByType('navigation')[0])"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--patches", type=int, default=100)
    parser.add_argument("--releases", type=int, default=50)
    chosen = parser.parse_args()
    page = pages.page(chosen.patches, chosen.patches, chosen.releases)
    times = []
    for _ in range(chosen.rounds):
        start = time.perf_counter()
        made = files(page)
        times.append(1000 * (time.perf_counter() - start))
    print("| what | median, ms | longest, ms |\n|---|---:|---:|")
    print(row("made (a process of its own loads jinja2 first)", times))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for file, data in made.items():
            (folder / file).write_bytes(data)
        with browser(folder / "browser") as tab:
            for line in clicked(tab, folder / "index.html", chosen.rounds):
                print(line)
    size = sum(map(len, made.values()))
    print(f"\n{size / 1000:.0f} kB; load at the end: {os.getloadavg()[0]:.1f}")
    return 0


def clicked(tab: Browser, page: Path, rounds: int) -> list[str]:
    """A row for each kind of click."""
    opened = []
    for _ in range(rounds):
        tab.open(page, 1280)
        opened.append(tab.value(LOADED))
    found: dict[str, list[float]] = {name: [] for name in CLICKS}
    for _ in range(rounds):
        for name, script in CLICKS.items():
            found[name].append(tab.value(TIMED % script))
    return [row("opened", opened), *(row(name, times) for name, times in found.items())]


def row(name: str, times: list[float]) -> str:
    return f"| {name} | {statistics.median(times):.1f} | {max(times):.1f} |"


if __name__ == "__main__":
    raise SystemExit(main())
