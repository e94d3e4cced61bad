"""What ranks say: the last lines, lines that match, and new ones as they come."""

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

LONGEST = 4000
"""Characters of a line that are shown."""
MOST = 10_000
"""Lines that are found at most."""
TAIL = 4 << 20
PAUSE = 0.2


def last_lines(path: str, count: int) -> list[str]:
    """The last `count` lines of a file, of its last four MiB."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - TAIL))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    return [line[:LONGEST] for line in text.splitlines()[-count:]] if count else []


def runs(folder: str) -> list[str]:
    """The runs whose logs are kept, the oldest first."""
    try:
        return sorted(os.listdir(os.path.join(folder, "logs")))
    except OSError:
        return []


def read(asked: dict[str, Any]) -> dict[str, Any]:
    """The rank's lines of the run `run` (None: the last; "all"), or those that match `pattern`."""
    kept = runs(asked["folder"])
    wanted = kept if asked["run"] == "all" else [asked["run"]] if asked["run"] else kept[-1:]
    pattern = re.compile(asked["pattern"]) if asked["pattern"] else None
    found, cut = [], False
    for run in wanted:
        path = os.path.join(asked["folder"], "logs", run, f"rank-{asked['rank']}.log")
        if pattern is None:
            lines = list(last_lines(path, asked["lines"]))
        else:
            last = deque((line for line in whole(path) if pattern.search(line)), MOST + 1)
            cut = cut or len(last) > MOST
            lines = list(last)[-MOST:]
        found.append({"run": run, "lines": lines, "there": os.path.exists(path)})
    return {"runs": kept, "found": found, "cut": cut}


def whole(path: str) -> Iterator[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                yield line.rstrip("\n")[:LONGEST]
    except OSError:
        return


def follow(asked: dict[str, Any]) -> None:
    """Write the last lines, then new ones as they come, those of runs that begin later included."""
    pattern, rank = re.compile(asked["pattern"] or ""), f"rank-{asked['rank']}.log"
    while not (path := newest(asked["folder"], rank)):
        time.sleep(PAUSE)
    most = asked["lines"]
    while True:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - TAIL) if most is not None else 0)
            left = b""
            while True:
                part = file.read()
                *lines, left = (left + part).split(b"\n")
                texts = [line.decode("utf-8", "replace")[:LONGEST] for line in lines]
                begin = 0 if most is None else max(0, len(texts) - most)
                tell([line for line in texts[begin:] if pattern.search(line)])
                most = None
                if not part:
                    if (after := newest(asked["folder"], rank)) and after != path:
                        path = after
                        break
                    time.sleep(PAUSE)


def newest(folder: str, rank: str) -> str | None:
    """The rank's log of the last run, once it is there."""
    for run in runs(folder)[-1:]:
        path = os.path.join(folder, "logs", run, rank)
        return path if os.path.exists(path) else None
    return None


def tell(lines: list[str]) -> None:
    if lines:
        with open(1, "wb", closefd=False) as out:
            out.write("".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))
