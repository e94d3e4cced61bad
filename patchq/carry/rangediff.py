"""What changed in a patch between two generations: the diff of its diffs, as range-diff shows it.

The pairs are known here (a patch keeps its name, and where a file went was found when it was
carried), so nothing is guessed. Line numbers and blob ids change with every release: left out.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping

from patchq.paths import lossless, show
from patchq.queue.diff import same_path

_HUNK = re.compile(rb"^@@ -[0-9,]+ \+[0-9,]+ @@.*$", re.MULTILINE)
_INDEX = re.compile(rb"^index [0-9a-f]{40}\.\.[0-9a-f]{40}.*\n", re.MULTILINE)
_FILE = re.compile(rb"^diff --git (.*)\n", re.MULTILINE)
_NAMES = re.compile(rb"^(?:--- |\+\+\+ ).*\n", re.MULTILINE)


def between(old: bytes, new: bytes, moved: Mapping[bytes, bytes] | None = None) -> str:
    """The unified diff of two generations of one diff; empty where only places moved.

    `moved` gives the new name of each file that upstream moved. Each file's part has a head line.
    """
    before = {(moved or {}).get(path, path): (path, text) for path, text in _files(old)}
    after = dict(_files(new))
    out: list[str] = []
    for path in sorted(before.keys() | after.keys()):
        was, text = before.get(path, (path, b""))
        now = after.get(path, b"")
        if text == now and was == path:
            continue
        name = show(path) if was == path else f"{show(was)} -> {show(path)}"
        out.append(f"## {name} ##")
        out += list(
            difflib.unified_diff(
                lossless(text).split("\n"), lossless(now).split("\n"), lineterm="", n=2
            )
        )[2:]
    return "\n".join(out)


def limited(diff: bytes, paths: Collection[bytes]) -> bytes:
    """The parts of a diff that are about `paths`."""
    starts = [found.start() for found in _FILE.finditer(diff)]
    parts = [diff[start:end] for start, end in zip(starts, [*starts[1:], len(diff)], strict=True)]
    found = ((_FILE.match(part), part) for part in parts)
    return b"".join(part for head, part in found if head and same_path(head[1]) in paths)


def hunks(range_diff: str) -> int:
    """In how many places the two generations differ."""
    return sum(line.startswith("@@ ") for line in range_diff.split("\n"))


def changes_lines(range_diff: str) -> bool:
    """Whether lines that the patch adds or removes changed, and not just what is around them."""
    return any(line[:1] in "+-" and line[1:2] in ("+", "-") for line in range_diff.split("\n"))


def _files(diff: bytes) -> list[tuple[bytes, bytes]]:
    """Path and text of each file's part, without what changes with every release."""
    starts = list(_FILE.finditer(diff))
    ends = [*(found.start() for found in starts[1:]), len(diff)][: len(starts)]
    return [
        (same_path(found[1]), _plain(diff[found.end() : end]))
        for found, end in zip(starts, ends, strict=True)
    ]


def _plain(text: bytes) -> bytes:
    return _HUNK.sub(b"@@", _NAMES.sub(b"", _INDEX.sub(b"", text)))
