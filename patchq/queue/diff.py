"""Diffs in git's format as values: files, modes, hunks (gitformat: `git help diff-format`).

Only the canonical form is read here (no renames, full ids); whatever else people bring is first
put into that form by git itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from patchq.errors import PatchqError
from patchq.paths import require_inside, show

ABSENT = "000000"
_HUNK = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_INDEX = re.compile(rb"^index ([0-9a-f]{40})\.\.([0-9a-f]{40})(?: (\d{6}))?$")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_LETTERS = {b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13}
_STRAY = re.compile(rb"^(?:[+ ]|-(?!-[ -]))")
NO_NEWLINE = b"\\ No newline at end of file"


class NotCanonical(Exception):
    """The diff is not in canonical form; git may still understand it."""


@dataclass(frozen=True, slots=True)
class Atom:
    """One minimal change: old lines [start, end) become `new` (lines with their ends)."""

    start: int
    end: int
    new: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines of the old side from `start` (0-based); both sides' lines with their ends."""

    start: int
    old: tuple[bytes, ...]
    new: tuple[bytes, ...]
    atoms: tuple[Atom, ...]


@dataclass(frozen=True, slots=True)
class FileDiff:
    """What a patch does to one path. A mode of "000000" means: absent on that side.

    `whole`: the file is replaced (a link takes its place, say), its hunks make it from nothing.
    `raw`: the section's text, kept for binary content only.
    """

    path: bytes
    old_mode: str
    new_mode: str
    old_oid: str | None
    new_oid: str | None
    hunks: tuple[Hunk, ...]
    binary: bool = False
    whole: bool = False
    raw: bytes = b""

    @property
    def added(self) -> bool:
        return self.old_mode == ABSENT

    @property
    def deleted(self) -> bool:
        return self.new_mode == ABSENT


def parse(text: bytes, where: str) -> tuple[FileDiff, ...]:
    """All files of a canonical diff.

    Raises NotCanonical for another form, PatchqError for paths that leave the tree.
    """
    files: list[FileDiff] = []
    lines = text.split(b"\n")
    at = 0
    while at < len(lines) and not lines[at].startswith(b"diff --git "):
        if lines[at].startswith((b"--- ", b"Index:", b"diff ", b"*** ")):
            raise NotCanonical("not a git diff")
        at += 1
    while at < len(lines):
        if not lines[at]:
            at += 1
            continue
        if not lines[at].startswith(b"diff --git "):
            raise NotCanonical("text between files")
        file, at = _file(lines, at, where)
        if file is None:
            continue
        if files and files[-1].path == file.path and files[-1].deleted and file.added:
            # git writes a change of type (file to link) as a deletion and an addition.
            before = files.pop()
            file = replace(file, old_mode=before.old_mode, old_oid=before.old_oid, whole=True)
        files.append(file)
    return tuple(files)


def _file(lines: list[bytes], at: int, where: str) -> tuple[FileDiff | None, int]:
    first = at
    path = same_path(lines[at][len(b"diff --git ") :])
    require_inside(path, where)
    old_mode = new_mode = ""
    old_oid = new_oid = None
    binary = False
    hunks: list[Hunk] = []
    renamed = [b"rename from ", b"rename to "]
    at += 1
    while at < len(lines):
        line = lines[at]
        if line.startswith(b"old mode "):
            old_mode = line[9:].decode()
        elif line.startswith(b"new mode "):
            new_mode = line[9:].decode()
        elif line.startswith(b"new file mode "):
            old_mode, new_mode = ABSENT, line[14:].decode()
        elif line.startswith(b"deleted file mode "):
            old_mode, new_mode = line[18:].decode(), ABSENT
        elif line.startswith(b"similarity index 100%"):
            pass
        elif renamed and line.startswith(renamed[0]):
            # An empty patch is written as a rename of a file to itself (design).
            if unquote(line[len(renamed[0]) :]) != path:
                raise NotCanonical("a rename")
            del renamed[0]
        elif found := _INDEX.match(line):
            old_oid, new_oid = found[1].decode(), found[2].decode()
            if found[3]:
                old_mode = new_mode = found[3].decode()
        elif line.startswith(b"index "):
            raise NotCanonical("short ids")
        elif line.startswith((b"rename ", b"copy ", b"similarity ", b"dissimilarity ")):
            raise NotCanonical("a rename or copy")
        else:
            break
        at += 1
    if "160000" in (old_mode, new_mode):
        raise PatchqError(
            f"{where} changes the submodule {show(path)}",
            "patches on submodules are not supported: carry a queue for that project instead",
        )
    if at < len(lines) and lines[at] == b"GIT binary patch":
        binary = True
        while at < len(lines) and not lines[at].startswith(b"diff --git "):
            at += 1
    elif at < len(lines) and lines[at].startswith(b"--- "):
        if at + 1 >= len(lines) or not lines[at + 1].startswith(b"+++ "):
            raise PatchqError(f"{where}: {show(path)} has no `+++` line", "make the patch again")
        _check_side(lines[at][4:], path)
        _check_side(lines[at + 1][4:], path)
        at += 2
        while at < len(lines) and lines[at].startswith(b"@@"):
            hunk, at = _hunk(lines, at, where, path)
            hunks.append(hunk)
    elif at < len(lines) and lines[at] and not lines[at].startswith(b"diff --git "):
        raise NotCanonical("an unknown line in a file's header")
    if not renamed:
        return None, at
    if not old_mode or not new_mode or (old_oid is None and old_mode == new_mode):
        raise NotCanonical("no ids")
    raw = b"\n".join(lines[first:at]) if binary else b""
    return (
        FileDiff(path, old_mode, new_mode, old_oid, new_oid, tuple(hunks), binary, raw=raw),
        at,
    )


def _hunk(lines: list[bytes], at: int, where: str, path: bytes) -> tuple[Hunk, int]:
    found = _HUNK.match(lines[at])
    if not found:
        raise _torn(where, path, at)
    old_left = int(found[2]) if found[2] else 1
    new_left = int(found[4]) if found[4] else 1
    start = int(found[1]) - (1 if old_left else 0)
    old: list[bytes] = []
    new: list[bytes] = []
    atoms: list[Atom] = []
    from_old, from_new = 0, 0
    at += 1
    end = len(lines)
    while old_left > 0 or new_left > 0:
        if at >= end:
            raise _torn(where, path, at)
        line = lines[at]
        sign, rest = line[:1], line[1:] + b"\n"
        if at + 1 < end and lines[at + 1] == NO_NEWLINE:
            rest = rest[:-1]
            at += 1
        if sign == b" ":
            if from_old < len(old) or from_new < len(new):
                atoms.append(Atom(start + from_old, start + len(old), tuple(new[from_new:])))
            old.append(rest)
            new.append(rest)
            from_old, from_new = len(old), len(new)
            old_left -= 1
            new_left -= 1
        elif sign == b"-":
            old.append(rest)
            old_left -= 1
        elif sign == b"+":
            new.append(rest)
            new_left -= 1
        elif (not line and at + 1 < len(lines)) or sign == b"\\":
            # An editor took the blank of an empty line, or diff speaks another language.
            raise NotCanonical("a line without its sign")
        else:
            raise _torn(where, path, at)
        at += 1
    if from_old < len(old) or from_new < len(new):
        atoms.append(Atom(start + from_old, start + len(old), tuple(new[from_new:])))
    return Hunk(start, tuple(old), tuple(new), tuple(atoms)), at


def require_whole(text: bytes, where: str) -> None:
    """For a unified diff in any dialect: nothing of it may be lost, and it names no absolute path.

    Raises PatchqError where lines follow a hunk that its counts leave out (git apply and patch(1)
    take those for text between files, and drop them), or a path is absolute.
    """
    lines = text.split(b"\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.startswith((b"--- /", b"+++ /", b"diff --git /")):
            if line.partition(b" ")[2].split(b"\t")[0].rstrip() != b"/dev/null":
                raise PatchqError(
                    f"{where} names an absolute path: {show(line)}",
                    "make the patch inside the source tree",
                )
            continue
        found = _HUNK.match(line)
        if not found:
            continue
        left = [1 if count is None else int(count) for count in (found[2], found[4])]
        while at < len(lines) and (left[0] > 0 or left[1] > 0):
            sign = lines[at][:1]
            left[0] -= sign in (b"", b" ", b"-")
            left[1] -= sign in (b"", b" ", b"+")
            at += 1
        if at < len(lines) and lines[at].startswith(b"\\"):
            at += 1
        if at < len(lines) and _STRAY.match(lines[at]):
            raise PatchqError(
                f"{where}: a hunk has more lines than it says: {show(lines[at])}",
                "correct the counts in its `@@` line, or make the patch again",
            )


def _torn(where: str, path: bytes, at: int) -> PatchqError:
    return PatchqError(
        f"{where}: the hunk of {show(path)} near line {at + 1} of the diff is damaged",
        "restore the file from git, or make the patch again",
    )


def same_path(rest: bytes) -> bytes:
    """The path of `a/PATH b/PATH`, both the same (renames are not canonical)."""
    if rest.startswith(b'"'):
        end = 1
        while end < len(rest) and rest[end : end + 1] != b'"':
            end += 2 if rest[end : end + 1] == b"\\" else 1
        first, second = rest[: end + 1], rest[end + 2 :]
    else:
        half = (len(rest) - 1) // 2
        first, second = rest[:half], rest[half + 1 :]
    old, new = unquote(first), unquote(second)
    if old[:2] != b"a/" or new[:2] != b"b/" or old[2:] != new[2:]:
        raise NotCanonical("two names, or other prefixes")
    return old[2:]


def _check_side(text: bytes, path: bytes) -> None:
    # git ends a name that holds a space with a tab, so that patch(1) finds its end.
    name = unquote(text[:-1] if text.endswith(b"\t") else text)
    if name != b"/dev/null" and name[2:] != path:
        raise NotCanonical("names that differ")


def unquote(text: bytes) -> bytes:
    """A name as git quotes it (core.quotePath): C escapes inside double quotes."""
    if not text.startswith(b'"'):
        return text

    def plain(found: re.Match[bytes]) -> bytes:
        code = found[1]
        if len(code) == 3:
            return bytes([int(code, 8) & 0xFF])
        return bytes([_LETTERS[code]]) if code in _LETTERS else code

    return _ESCAPE.sub(plain, text[1:-1])
