"""Replay what really became of pull requests, beside the peers.

    python tests/bench/replay.py MIRROR OLD NEW [OLD NEW ...] [--most 60] [--ways numbers,plain]

MIRROR is the git directory of a mirror with `refs/pull/N/head`; OLD and NEW name releases. For each
pair a series of real pull requests is made on OLD (as carried, changed in review, never landed,
landed later, reverted, bundled, landed under another number) and carried onto NEW by each way.
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
from collections import Counter
from dataclasses import asdict

from tests.bench.measure import hermetic
from tests.bench.replay_build import Builder, Item, Replay
from tests.bench.replay_ways import WAYS, Found, Score, score
from tests.bench.table import rows


def main() -> int:
    """Build, carry, count, print."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("mirror", type=Path)
    parser.add_argument("releases", nargs="+", metavar="OLD NEW")
    parser.add_argument("--most", type=int, default=60, help="patches of a series, at most")
    parser.add_argument("--ways", default=",".join(WAYS), help="comma-separated")
    parser.add_argument("--work", type=Path, help="a folder to keep")
    parser.add_argument("--json", type=Path, help="write what was found here")
    parser.add_argument("--odd", action="store_true", help="list every patch that was misjudged")
    chosen = parser.parse_args()
    if len(chosen.releases) % 2:
        parser.error("name pairs of releases: OLD NEW")
    ways = chosen.ways.split(",")
    with tempfile.TemporaryDirectory(prefix="patchq-replay-") as folder:
        work = (chosen.work or Path(folder)).resolve()
        pairs = list(zip(chosen.releases[::2], chosen.releases[1::2], strict=True))
        found = [
            _one(chosen.mirror.resolve(), old, new, chosen.most, ways, work) for old, new in pairs
        ]
    print(table([replay.items for replay, _ in found], [each for _, each in found]))
    if chosen.odd:
        print(odd(found))
    if chosen.json:
        chosen.json.write_text(json.dumps([_plain(*each) for each in found], indent=1) + "\n")
    return 0


def _one(
    mirror: Path, old: str, new: str, most: int, ways: list[str], work: Path
) -> tuple[Replay, dict[str, Found]]:
    place = work / f"{old}-{new}".replace("/", "_")
    env = hermetic(place / "home")
    replay = Builder(mirror, old, new, place, env).build(most)
    kinds = Counter(item.kind for item in replay.items)
    told = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    print(f"{old} to {new}: {len(replay.items)} patches ({told})", file=sys.stderr, flush=True)
    return replay, {way: WAYS[way][1](replay, place, env) for way in ways}


def table(items: list[list[Item]], found: list[dict[str, Found]]) -> str:
    """All series together, one row a way."""
    head = [
        *("way", "landed ones recognised", "as carried", "changed in review"),
        *("needed, wrongly dropped", "reverted, wrongly dropped", "stops"),
        *("of them on patches that upstream has", "stale, silently", "seconds"),
    ]
    kinds = Counter(item.kind for series in items for item in series)
    body = []
    for way in found[0] if found else ():
        scores = [score(series, each[way]) for series, each in zip(items, found, strict=True)]
        total = _total(scores)
        seconds = sum(each[way].seconds for each in found)
        body.append(
            [
                WAYS[way][0],
                f"{total['recognised']}/{total['landed']}",
                f"{total['as_carried']}/{kinds['as carried']}",
                f"{total['changed']}/{kinds['changed in review']}",
                f"{total['lost']}",
                f"{total['reverted_lost']}/{kinds['reverted']}",
                f"{total['stops']}",
                f"{total['stops_on_landed']}",
                f"{total['stale']}",
                f"{seconds:.1f}",
            ]
        )
    told = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    return f"{sum(kinds.values())} patches in {len(items)} series: {told}.\n\n" + rows(head, body)


def _total(scores: list[Score]) -> Counter[str]:
    total: Counter[str] = Counter()
    for each in scores:
        for key, value in asdict(each).items():
            total[key] += value if isinstance(value, int) else len(value)
    return total


def odd(found: list[tuple[Replay, dict[str, Found]]]) -> str:
    """Every patch that a way misjudged, by name."""
    lines = []
    for replay, ways in found:
        for way, each in ways.items():
            told = score(replay.items, each)
            landed = {item.name for item in replay.items if item.landed}
            parts = {
                "lost": told.lost,
                "stale": told.stale,
                "shrunk": sorted(each.shrunk & landed),
                "asked": sorted(each.stopped & landed),
            }
            text = "; ".join(f"{key}: {', '.join(names)}" for key, names in parts.items() if names)
            lines.append(f"{replay.old}..{replay.new} {way}: {text or 'nothing'} ({each.note})")
    return "\n".join(lines)


def _plain(replay: Replay, ways: dict[str, Found]) -> dict[str, object]:
    return {
        "old": replay.old,
        "new": replay.new,
        "items": [asdict(item) for item in replay.items],
        "ways": {
            way: {
                "dropped": sorted(each.dropped),
                "shrunk": sorted(each.shrunk),
                "stopped": sorted(each.stopped),
                "seconds": each.seconds,
                "note": each.note,
            }
            for way, each in ways.items()
        },
    }


if __name__ == "__main__":
    raise SystemExit(main())
