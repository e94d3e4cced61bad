"""What changed in a patch between two generations: the diff of its diffs, as range-diff shows it.

The pairs are known here (a patch keeps its name, and where a file went was found when it was
carried), so nothing is guessed. Line numbers and blob ids change with every release: left out.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Collection, Mapping

from patchq.paths import lossless, show
from patchq.queue.diff import same_path
from patchq.queue.patch import quote

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
    return b"".join(part for path, part in _parts(diff) if path in paths)


def renamed(diff: bytes, names: Mapping[bytes, bytes]) -> bytes:
    """The diff with each file that `names` has under the name given there, unless that is in it, or
    would be twice.
    """
    parts = _parts(diff) if names else []
    taken = Counter(path for path, _ in parts)
    taken.update(names[path] for path in [*taken] if path in names)
    free = {path: to for path, to in names.items() if path in taken and taken[to] == 1}
    if not free:
        return diff
    return b"".join(_headed(part, free[path]) if path in free else part for path, part in parts)


def _headed(part: bytes, path: bytes) -> bytes:
    """One file's part of a diff with `path` in its head."""
    head, mark, rest = part.partition(b"\n@@")
    old, new = quote(b"a/" + path), quote(b"b/" + path)
    lines = [b"diff --git %b %b" % (old, new), *head.split(b"\n")[1:]]
    for at, line in enumerate(lines):
        for sign, name in ((b"--- ", old), (b"+++ ", new)):
            if line.startswith(sign) and line != sign + b"/dev/null":
                lines[at] = sign + name
    return b"\n".join(lines) + mark + rest


def hunks(range_diff: str) -> int:
    """In how many places the two generations differ."""
    return sum(line.startswith("@@ ") for line in range_diff.split("\n"))


def changes_lines(range_diff: str) -> bool:
    """Whether lines that the patch adds or removes changed, and not just what is around them."""
    return any(line[:1] in "+-" and line[1:2] in ("+", "-") for line in range_diff.split("\n"))


def _files(diff: bytes) -> list[tuple[bytes, bytes]]:
    """Path and text of each file's part, without what changes with every release."""
    return [(path, _plain(part.partition(b"\n")[2])) for path, part in _parts(diff)]


def _parts(diff: bytes) -> list[tuple[bytes, bytes]]:
    """Path and text of each file's part."""
    heads = list(_FILE.finditer(diff))
    ends = [*(head.start() for head in heads[1:]), len(diff)][: len(heads)]
    return [
        (same_path(head[1]), diff[head.start() : end])
        for head, end in zip(heads, ends, strict=True)
    ]


def _plain(text: bytes) -> bytes:
    return _HUNK.sub(b"@@", _NAMES.sub(b"", _INDEX.sub(b"", text)))
