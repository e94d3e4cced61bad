"""What changed in a patch between two generations: the diff of its diffs, as range-diff shows it.

The pairs are known here (a patch keeps its name), so nothing is guessed, and line numbers and
blob ids, which change with every release, are left out.
"""

from __future__ import annotations

import difflib
import re

from patchq.queue.patch import Patch

_HUNK = re.compile(rb"^@@ -[0-9,]+ \+[0-9,]+ @@.*$", re.MULTILINE)
_INDEX = re.compile(rb"^index [0-9a-f]{40}\.\.[0-9a-f]{40}.*\n", re.MULTILINE)


def comparable(diff: bytes) -> bytes:
    """A diff without line numbers and ids."""
    return _HUNK.sub(b"@@", _INDEX.sub(b"", diff))


def between(old: Patch, new: Patch) -> str:
    """The unified diff of two generations of one patch; empty where only places moved."""
    before, after = comparable(old.diff), comparable(new.diff)
    if before == after:
        return ""
    lines = difflib.unified_diff(
        before.decode("utf-8", "surrogateescape").split("\n"),
        after.decode("utf-8", "surrogateescape").split("\n"),
        "before",
        "after",
        lineterm="",
        n=2,
    )
    return "\n".join(list(lines)[2:])
