"""The benchmark of the watch for spinning runs, on a set small enough for a test."""

from __future__ import annotations

from tests.bench.spin import measure


def test_both_tables() -> None:
    rows = [line.split(" | ") for line in measure(20_000, 4).splitlines() if line.startswith("| ")]
    loops = {tuple(row[:2]): row[3] for row in rows if row[3].endswith("%")}
    assert len(loops) == 12 and set(loops.values()) == {"100.0%"}
    sums = [row for row in rows if row[1] == "**all**"]
    assert [row[4] for row in sums] == ["0", "0"]
