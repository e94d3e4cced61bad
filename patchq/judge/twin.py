"""A landing that is known by a note: new sentences that it adds byte for byte as the patch does.

Review may rewrite a patch to the last line and leave what says what it is for (a changelog
fragment, say) as it was. Nobody writes the same sentences twice, so the note tells which commit is
the landing; how much of the patch that brought is another question, answered place by place.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from patchq.judge.change import EMPTY, tells
from patchq.judge.commits import Told
from patchq.judge.model import FileSeen, Past
from patchq.judge.parsed import parsed
from patchq.queue.diff import Atom, FileDiff, Hunk

REGULAR = ("100644", "100755")
TEXT = ("content", "both added the file")
"""Conflicts in which upstream's text stands beside the patch's."""
END = b"\0"
"""Stands for the line before the first, and after the last one."""
_WORD = re.compile(r"[(\"'*]*[^\W\d_]+(?:[-'’][^\W\d_]+)*[.,;:!?)\"'*]*")
_CODE = re.compile(r"`+[^`]*`+|:[a-z]+:")
_DOCUMENT = (b".md", b".rst")
_SHORT = 10
"""Lines; what says more says it for its own sake."""
_FRAGMENT = re.compile(rb"[^./]+\.[a-z]+\.(?:md|rst)")
_LEGAL = re.compile(rb"(?:^|/)(?:licen[cs]e|copying|notice|authors)[^/]*$", re.I)


def notes(files: Iterable[FileDiff]) -> dict[bytes, str]:
    """The notes that a patch adds, with the ids of their contents.

    Code and what programs write is none; a licence says nothing of the patch. An empty changelog
    fragment (`7.trivial.rst`) is one: its name says all of it, and projects ask for it.
    """
    return {
        file.path: file.new_oid
        for file in files
        if file.added
        and file.new_oid
        and file.new_mode in REGULAR
        and not file.binary
        and not _LEGAL.search(file.path)
        and (_is_blank(file) or _is_prose(b"".join(line for h in file.hunks for line in h.new)))
    }


def _is_blank(file: FileDiff) -> bool:
    return file.new_oid == EMPTY and _is_fragment(file.path)


def _is_prose(data: bytes) -> bool:
    """Whether a text is sentences: a line of five words, and hardly one of more code than words."""
    try:
        lines = [line for line in data.decode().splitlines() if line.strip()]
    except UnicodeDecodeError:
        return False
    counts = [_words(line) for line in lines]
    told = sum(words >= 3 and words >= 2 * others for words, others in counts)
    return any(words >= 5 and words >= 2 * others for words, others in counts) and (
        told * 2 >= len(lines)
    )


def _words(line: str) -> tuple[int, int]:
    """How many words a line has, and what else; quoted code is neither."""
    found = _CODE.sub(" ", line).split()
    words = sum(bool(_WORD.fullmatch(each)) for each in found)
    return words, sum(any(map(str.isalnum, each)) for each in found) - words


def added_as(told: Told, known: Mapping[bytes, str], paths: Iterable[bytes]) -> bytes:
    """Which of the notes a commit adds that changes other files of the patch too; b"" for none."""
    if not known:
        return b""
    changes = {each.path: each for each in told.commit.changes}
    here = (
        path
        for path, oid in known.items()
        if path in changes and changes[path].status == "A" and changes[path].new_oid == oid
    )
    note = next(here, b"")
    return note if note and any(path in changes and path not in known for path in paths) else b""


def withdrawn(told: Told, landing: Told, note: bytes) -> bool | None:
    """Whether a commit that takes the note away takes the landing back; None: it may.

    A release takes notes away too (their sentences stand in its changelog then): it leaves the
    landing's other files alone.
    """
    if not any(each.path == note and each.status == "D" for each in told.commit.changes):
        return False
    theirs = {each.path for each in told.commit.changes}
    others = {each.path for each in landing.commit.changes} - {note}
    if not theirs & others:
        return False
    if theirs <= others | {note}:
        return True
    return None if 2 * len(theirs & others) >= len(others) else False


@dataclass(frozen=True)
class _Edit:
    """One change of a file: its lines without ends and blanks, and `place`, what it changes there
    with the lines before and after.
    """

    removed: tuple[bytes, ...]
    added: tuple[bytes, ...]
    place: frozenset[bytes]

    @property
    def size(self) -> int:
        return len(self.removed) + len(self.added)


def shares_a_path(one: Told, other: Told) -> bool:
    return not {c.path for c in one.commit.changes}.isdisjoint(c.path for c in other.commit.changes)


def restated(known: Mapping[bytes, str], landings: Iterable[Told]) -> frozenset[bytes]:
    """The notes that a landing adds too, in whatever words, or another one that differs in its
    ending: review asks for `7.misc.rst` in place of `7.bugfix.rst`. Of an empty one nothing is
    left where the landing adds a fragment of its own to that folder.
    """
    changes = [each for told in landings for each in told.commit.changes]
    added = [each.path for each in changes if each.status == "A"]
    stems = {_stem(path) for path in added}
    folders = {_shelf(path) for path in added if _is_fragment(path)}
    return frozenset(
        path
        for path, oid in known.items()
        if _stem(path) in stems or (oid == EMPTY and _shelf(path) in folders)
    )


def documents(files: Iterable[FileDiff]) -> frozenset[bytes]:
    """The documents that a patch adds, and that are named as a note is or no longer than one."""
    return frozenset(
        file.path
        for file in files
        if file.added
        and file.path.endswith(_DOCUMENT)
        and (_is_fragment(file.path) or sum(len(h.new) for h in file.hunks) <= _SHORT)
    )


def _is_fragment(path: bytes) -> bool:
    return bool(_FRAGMENT.fullmatch(path.rpartition(b"/")[2]))


def _shelf(path: bytes) -> tuple[bytes, bytes]:
    """The folder of a file and the last ending of its name."""
    return path.rpartition(b"/")[0], path.rpartition(b".")[2]


def _stem(path: bytes) -> bytes:
    folder, slash, name = path.rpartition(b"/")
    return folder + slash + (name.partition(b".")[0] or name)


def left_over(files: Iterable[FileDiff], theirs: Iterable[FileDiff]) -> dict[bytes, int]:
    """Of each file of a patch that its landing changes too: lines where the landing has no change.

    A file is left out where the patch adds more to it than the landing does: it may hold something
    else as well.
    """
    landed = {file.path: file for file in theirs}
    found = {}
    for file in files:
        other = landed.get(file.path)
        if other is None or _kind(file) != _kind(other):
            continue
        mine, its = _edits(file), _edits(other)
        if file.path.endswith(b".py"):
            mine = _but_reordered(mine)
        if sum(len(each.added) for each in mine) <= sum(len(each.added) for each in its):
            whole = file.added or file.deleted
            loose = [] if whole else [e for e in mine if not any(_same_place(e, i) for i in its)]
            found[file.path] = sum(each.size for each in loose)
    return found


def _kind(file: FileDiff) -> tuple[bool, bool, bool]:
    return file.added, file.deleted, file.binary or not file.hunks


def _edits(file: FileDiff) -> list[_Edit]:
    return [_edit(hunk, atom) for hunk in file.hunks for atom in hunk.atoms]


def _edit(hunk: Hunk, atom: Atom) -> _Edit:
    start, end = atom.start - hunk.start, atom.end - hunk.start
    removed = _bare(hunk.old[start:end])
    before = _bare(hunk.old[:start])[-1:] or (END,)
    after = _bare(hunk.old[end:])[:1] or (END,)
    return _Edit(removed, _bare(atom.new), frozenset((*removed, *before, *after)))


def _bare(lines: Iterable[bytes]) -> tuple[bytes, ...]:
    return tuple(line.rstrip() for line in lines if line.strip())


def _same_place(one: _Edit, other: _Edit) -> bool:
    """Whether both change the same line, or stand between the same ones."""
    shared = one.place & other.place
    both = set(one.removed) & set(other.removed)
    return any(map(tells, both)) or (len(shared) > 1 and any(map(_marks, shared)))


def _marks(line: bytes) -> bool:
    return line is END or tells(line)


def _but_reordered(edits: list[_Edit]) -> list[_Edit]:
    """Without those that put a Python file's imports in another order, or in other lines."""
    imports = [(each, _imported(each.removed), _imported(each.added)) for each in edits]
    pure = [(each, old, new) for each, old, new in imports if old is not None and new is not None]
    before = sum((old for _, old, _ in pure), Counter[str]())
    after = sum((new for *_, new in pure), Counter[str]())
    same = [each for each, *_ in pure] if before == after else []
    return [each for each in edits if each not in same]


def _imported(lines: Iterable[bytes]) -> Counter[str] | None:
    """What import statements bind; None where something else stands among them."""
    tree = parsed(b"\n".join(lines))
    if tree is None:
        return None
    found: Counter[str] = Counter()
    for node in tree.body:
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            return None
        source = "." * node.level + (node.module or "") if isinstance(node, ast.ImportFrom) else ""
        found.update(f"{source} {each.name} {each.asname}" for each in node.names)
    return found


def brought(past: Past, files: Iterable[FileSeen]) -> frozenset[bytes]:
    """The files of a patch in which nothing is left to do once its landing is known by a note."""
    if not past.twin or not past.whole:
        return frozenset()
    return frozenset(
        file.path
        for file in files
        if file.merge == "empty"
        or file.path == past.twin
        or (file.merge == "conflict" and file.kind in TEXT and not past.loose.get(file.path, 1))
    )
