#!/usr/bin/env python3
"""Which cluster tries which step of a bisection (.github/workflows/round.yml).

spread.py names CLUSTERS                the names, one a line
spread.py steps CLUSTERS < NEXT.json    what a job gives: its state, and a step for each cluster

CLUSTERS is a list of names as JSON; NEXT.json is what `patchq bisect --next N --json` says.
"""

from __future__ import annotations

import json
import re
import sys

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def names(text: str) -> list[str]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if (
        not isinstance(found, list)
        or not found
        or not all(isinstance(each, str) and NAME.fullmatch(each) for each in found)
        or len(set(found)) != len(found)
    ):
        sys.exit(f'{text!r:.200} is no list of clusters: write it like ["sparks", "others"]')
    return found


def main(what: str, clusters: str) -> None:
    found = names(clusters)
    if what == "names":
        print(*found, sep="\n")
        return
    said = json.load(sys.stdin)
    steps = [each["step"] for each in said["steps"]]
    rows = [{"step": step, "cluster": cluster} for step, cluster in zip(steps, found, strict=False)]
    print(f"state={said['state']}")
    print(f"steps={json.dumps(rows)}")


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("names", "steps"):
        sys.exit(__doc__)
    main(*sys.argv[1:])
