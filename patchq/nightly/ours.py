"""What in a text on the forge is patchq's: what stands between two markers. The rest is not."""

from __future__ import annotations

from patchq.forge.threads import LONGEST_BODY

BEGIN, END = "<!-- patchq:begin -->", "<!-- patchq:end -->"
SPARE = 400
"""Characters that a text keeps free, for markers."""


def merged(standing: str, block: str) -> str:
    """A text with `block` between the markers, and what stands outside of them as it is."""
    block = f"{BEGIN}\n{block.strip()}\n{END}"
    standing = plain(standing)
    before, begin, rest = standing.partition(BEGIN)
    _, end, after = rest.partition(END)
    if begin and end:
        return f"{before}{block}{after}"
    # Somebody took a marker out: what is there now is theirs.
    standing = standing.replace(BEGIN, "").replace(END, "").strip()
    return f"{standing}\n\n{block}" if standing else block


def unmarked(body: str) -> str:
    """Without anything that reads as a marker: a log line of strangers' may hold one."""
    return body.replace("<!--", "<! --")


def room(standing: str) -> int:
    """Characters that are left for what patchq writes."""
    outside = merged(standing, "")
    return max(LONGEST_BODY - len(outside) - SPARE, 2000)


def plain(body: str) -> str:
    """A text as it was sent: GitHub's own editor ends lines in another way."""
    return body.replace("\r\n", "\n")
