"""Random series of patches on a small file or two, with what every patch leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from patchq.gitstore.objects import blob_id
from patchq.queue.diff import Hunk
from patchq.queue.patch import Patch
from tests.support.kit import hunks_between, made

Content = dict[bytes, tuple[bytes, ...]]
"""Lines by path; an absent file is not there."""
PATHS = (b"a.txt", b"b.txt")


@dataclass(frozen=True)
class Story:
    """A base, the patches on it, and the files after each of them."""

    base: Content
    patches: tuple[Patch, ...]
    after: tuple[Content, ...]


@st.composite
def stories(draw: st.DrawFn, *, unique: bool = True, most: int = 6) -> Story:
    """Patches that replace, insert and remove lines, make files and remove them.

    `unique`: no line stands twice; else lines are alike on purpose.
    """
    base: Content = {}
    for path in PATHS:
        size = draw(st.integers(0, 30))
        if size:
            letter = path[:1].decode()
            base[path] = tuple(_line(draw, unique, f"{letter}{n}") for n in range(size))
    now = dict(base)
    patches: list[Patch] = []
    after: list[Content] = []
    for number in range(1, draw(st.integers(2, most)) + 1):
        new = dict(now)
        for path in draw(st.sets(st.sampled_from(PATHS), min_size=1)):
            _edit(draw, new, path, f"p{number}{path[:1].decode()}", unique)
        if new == now:
            continue
        patches.append(made(number, f"p{number}", diff(now, new)))
        after.append(new)
        now = new
    return Story(base, tuple(patches), tuple(after))


def _line(draw: st.DrawFn, unique: bool, name: str) -> bytes:
    return f"{name}\n".encode() if unique else draw(st.sampled_from((b"x\n", b"y\n", b"\n")))


def _edit(draw: st.DrawFn, files: Content, path: bytes, name: str, unique: bool) -> None:
    lines = files.get(path)
    if lines is None:
        size = draw(st.integers(1, 6))
        files[path] = tuple(_line(draw, unique, f"{name}.{n}") for n in range(size))
        return
    if draw(st.integers(0, 7)) == 0:
        del files[path]
        return
    start = draw(st.integers(0, len(lines)))
    end = draw(st.integers(start, min(len(lines), start + 3)))
    new = tuple(
        _line(draw, unique, f"{name}.{n}") for n in range(draw(st.sampled_from((0, 0, 1, 2))))
    )
    left = lines[:start] + new + lines[end:]
    if left:
        files[path] = left


def diff(old: Mapping[bytes, Sequence[bytes]], new: Mapping[bytes, Sequence[bytes]]) -> bytes:
    """A canonical diff."""
    out = b""
    for path in sorted({*old, *new}):
        before, after = old.get(path), new.get(path)
        if before == after:
            continue
        out += b"diff --git a/%s b/%s\n" % (path, path)
        ids = [blob_id(b"".join(x)) if x is not None else "0" * 40 for x in (before, after)]
        if before is None:
            out += b"new file mode 100644\n"
        if after is None:
            out += b"deleted file mode 100644\n"
        mode = " 100644" if before is not None and after is not None else ""
        out += f"index {ids[0]}..{ids[1]}{mode}\n".encode()
        out += b"--- a/%s\n" % path if before is not None else b"--- /dev/null\n"
        out += b"+++ b/%s\n" % path if after is not None else b"+++ /dev/null\n"
        shift = 0
        for hunk in hunks_between(list(before or ()), list(after or ())):
            out += _hunk(hunk, hunk.start + shift)
            shift += len(hunk.new) - len(hunk.old)
    return out


def _hunk(hunk: Hunk, new_start: int) -> bytes:
    body = b""
    at = hunk.start
    for atom in hunk.atoms:
        body += b"".join(
            b" " + line for line in hunk.old[at - hunk.start : atom.start - hunk.start]
        )
        old = hunk.old[atom.start - hunk.start : atom.end - hunk.start]
        body += b"".join(b"-" + line for line in old) + b"".join(b"+" + line for line in atom.new)
        at = atom.end
    body += b"".join(b" " + line for line in hunk.old[at - hunk.start :])
    ranges = _range(hunk.start, len(hunk.old)), _range(new_start, len(hunk.new))
    return b"@@ -%s +%s @@\n" % ranges + body


def _range(start: int, size: int) -> bytes:
    return b"%d,%d" % (start + 1 if size else start, size)
