"""What conflicted in a patch, as a value: three versions of a path, and how a tree shows them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from patchq.carry.merge import Blob
from patchq.carry.moves import Merge
from patchq.gitstore.fastimport import Write

ABSENT = "absent"
_START = re.compile(rb"^<<<<<<< .*\n", re.MULTILINE)
_BASE = re.compile(rb"^\|\|\|\|\|\|\| .*\n", re.MULTILINE)
_MIDDLE = re.compile(rb"^=======\n", re.MULTILINE)
_END = re.compile(rb"^>>>>>>> .*\n?", re.MULTILINE)


@dataclass(frozen=True, order=True)
class Key:
    """A path on the new release and the exact three versions that met there ("MODE ID")."""

    path: bytes
    base: str
    ours: str
    theirs: str

    @property
    def digest(self) -> str:
        """sha256 in hexadecimal."""
        return digest([self])


def digest(keys: Iterable[Key]) -> str:
    total = hashlib.sha256()
    for key in sorted(keys):
        head = f"{key.base}\n{key.ours}\n{key.theirs}\n{len(key.path)}\n"
        total.update(head.encode() + key.path)
    return total.hexdigest()


def key_of(merge: Merge) -> Key:
    """The key of a merge; to be asked before its track moves on."""
    return Key(merge.track.new_path, *map(version, merge.sides))


def version(blob: Blob | None) -> str:
    return ABSENT if blob is None else f"{blob.mode} {blob.oid}"


@dataclass(frozen=True)
class Side:
    """One place of a conflict in a text: its line in the marked file, and the three versions."""

    line: int
    ours: bytes
    base: bytes
    theirs: bytes


@dataclass(frozen=True)
class Clash:
    """A path that could not be merged: `path` is the patch's, `new_path` the new release's.

    `marked` is the text with markers; empty where there can be none (binary files, links, modes,
    something else in the way).
    """

    path: bytes
    new_path: bytes
    kind: str
    base: Blob | None = field(repr=False)
    ours: Blob | None = field(repr=False)
    theirs: Blob | None = field(repr=False)
    marked: bytes = field(default=b"", repr=False)

    @property
    def sides(self) -> tuple[Side, ...]:
        """Every place of the marked text."""
        return tuple(_sides(self.marked))


def clashes(merges: Sequence[Merge]) -> tuple[Clash, ...]:
    """The conflicts among the merges of a patch; to be asked before their tracks move on."""
    return tuple(
        Clash(each.seen.path, each.track.new_path, each.seen.kind, *each.sides, each.outcome.marked)
        for each in merges
        if each.seen.merge == "conflict"
    )


def _sides(marked: bytes) -> Iterable[Side]:
    at = 0
    while start := _START.search(marked, at):
        base = _BASE.search(marked, start.end())
        middle = _MIDDLE.search(marked, base.end()) if base else None
        end = _END.search(marked, middle.end()) if middle else None
        if not (base and middle and end):
            return
        yield Side(
            marked.count(b"\n", 0, start.start()) + 1,
            marked[start.end() : base.start()],
            marked[base.end() : middle.start()],
            marked[middle.end() : end.start()],
        )
        at = end.end()


def beside(clash: Clash, name: str, stands: Callable[[bytes], bool]) -> bytes:
    """Where the patch's version of a file without markers is shown: PATH.NAME.

    `stands` tells whether a file is at a path upstream; what is in the way is named so itself.
    """
    parts = clash.new_path.split(b"/")
    ends = range(1, len(parts))
    end = next((n for n in ends if stands(b"/".join(parts[:n]))), len(parts))
    mark = b"." + name.encode()
    while stands(b"/".join(parts[:end]) + mark):
        mark += b"-"
    return b"/".join([b"/".join(parts[:end]) + mark, *parts[end:]])


def shown(found: Sequence[Clash], name: str, stands: Callable[[bytes], bool]) -> list[Write]:
    """What is written over upstream's side to show the conflicts of the patch `name`."""
    writes = []
    for clash in found:
        blob = clash.theirs or clash.ours
        if clash.marked and blob is not None:
            writes.append(Write(clash.new_path, blob.mode, clash.marked))
            continue
        text = b"%b deletes the file beside this note.\n" % name.encode()
        blob = clash.theirs or Blob("100644", text)
        writes.append(Write(beside(clash, name, stands), blob.mode, blob.data))
    return writes
