"""What a patch changes as lines, to be compared with what commits change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from patchq.gitstore.log import Lines
from patchq.queue.diff import FileDiff

FEW = 3
"""Lines from which agreement is no chance."""
LETTERS = 5
"""Letters and digits of a line from which it tells something: `else:` stands everywhere."""
EMPTY = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
"""Git's id of a file without content, of which a repository has many."""

_NO_LETTERS = bytes(byte for byte in range(128) if not chr(byte).isalnum())


@dataclass(frozen=True)
class Change:
    """What a patch changes, as lines, and who it says it is.

    `added` and `removed` hold the telling lines (without ends; moves cancel), all where hardly
    one tells. `numbers` are the pull requests that it came from, `ids` upstream's commits that it
    says it is; `hints` are numbers that may be of another repository. `notes`: its
    new files that say in sentences, or in their names alone, what it is for (see `twin`), with the
    ids of their contents; `marks`: those by which a commit can be known for its landing.
    """

    added: Mapping[bytes, int]
    removed: Mapping[bytes, int]
    paths: frozenset[bytes] = frozenset()
    numbers: frozenset[int] = frozenset()
    ids: tuple[str, ...] = ()
    title: str = ""
    hints: frozenset[int] = frozenset()
    notes: Mapping[bytes, str] = field(default_factory=dict)
    marks: Mapping[bytes, str] = field(default_factory=dict)

    @cached_property
    def size(self) -> int:
        return sum(self.added.values()) + sum(self.removed.values())

    def forward(self, lines: Lines) -> int:
        """How many of the lines a commit changes in the same way."""
        return common(self.added, lines.added) + common(self.removed, lines.removed)

    def inverse(self, lines: Lines) -> int:
        return common(self.added, lines.removed) + common(self.removed, lines.added)


def change(
    files: Iterable[FileDiff],
    numbers: Collection[int] = (),
    ids: Sequence[str] = (),
    title: str = "",
    hints: Collection[int] = (),
) -> Change:
    """The lines of a patch."""
    added: Counter[bytes] = Counter()
    removed: Counter[bytes] = Counter()
    paths = []
    for file in files:
        paths.append(file.path)
        for hunk in file.hunks:
            for atom in hunk.atoms:
                added.update(line.rstrip() for line in atom.new)
                old = hunk.old[atom.start - hunk.start : atom.end - hunk.start]
                removed.update(line.rstrip() for line in old)
    net = added - removed, removed - added
    telling = tuple({line: count for line, count in side.items() if tells(line)} for side in net)
    if sum(map(len, telling)) < FEW:
        telling = tuple({line: n for line, n in side.items() if line} for side in net)
    where = frozenset(paths), frozenset(numbers), tuple(ids)
    return Change(telling[0], telling[1], *where, title, frozenset(hints))


def held(files: Iterable[FileDiff], theirs: Iterable[bytes]) -> dict[bytes, float]:
    """Of each path of a patch the share of its lines that upstream's diffs change as well.

    A path without lines counts as held where a diff is about it.
    """
    found: Counter[tuple[bytes, bytes]] = Counter()
    heads: set[bytes] = set()
    for diff in theirs:
        inside = False
        for line in diff.split(b"\n"):
            if line.startswith(b"diff --git "):
                inside = False
                heads.add(line)
            elif line.startswith(b"@@"):
                inside = True
            elif inside and line[:1] in (b"+", b"-"):
                found[line[:1], line[1:].rstrip()] += 1
    shares = {}
    for file in files:
        mine = _signed(file)
        total = sum(mine.values())
        here = sum((mine & found).values())
        about = b"diff --git a/%b b/%b" % (file.path, file.path) in heads
        shares[file.path] = here / total if total else float(about)
    return shares


def made(file: FileDiff, theirs: Iterable[FileDiff]) -> bool:
    """Whether upstream's diffs make all that a patch does to a file, line by line, in that file."""
    found: Counter[tuple[bytes, bytes]] = Counter()
    modes = {file.old_mode}
    for each in theirs:
        if each.path == file.path:
            found.update(_signed(each))
            modes.add(each.new_mode)
    mine = _signed(file)
    return bool(mine) and mine <= found and file.new_mode in modes and not file.whole


def _signed(file: FileDiff) -> Counter[tuple[bytes, bytes]]:
    """The lines of a file that a diff adds and removes, with their signs; blank ones left out."""
    found: Counter[tuple[bytes, bytes]] = Counter()
    for hunk in file.hunks:
        for atom in hunk.atoms:
            old = hunk.old[atom.start - hunk.start : atom.end - hunk.start]
            found.update((b"+", line.rstrip()) for line in atom.new if line.strip())
            found.update((b"-", line.rstrip()) for line in old if line.strip())
    return found


def tells(line: bytes) -> bool:
    return len(line.translate(None, _NO_LETTERS)) >= LETTERS


def wanted(changes: Iterable[Change]) -> frozenset[bytes]:
    """All lines that are to be looked for."""
    return frozenset(
        line for each in changes for side in (each.added, each.removed) for line in side
    )


def together(changes: Sequence[Change]) -> Change:
    """Several patches of the same pull request as one; what a later one takes out is left out."""
    added: Counter[bytes] = Counter()
    removed: Counter[bytes] = Counter()
    for each in changes:
        added.update(each.added)
        removed.update(each.removed)
    first = changes[0]
    paths = frozenset(path for each in changes for path in each.paths)
    ids = tuple(oid for each in changes for oid in each.ids)
    return Change(added - removed, removed - added, paths, first.numbers, ids)


def common(mine: Mapping[bytes, int], theirs: Mapping[bytes, int]) -> int:
    """How many of the counted lines are in both."""
    return sum(min(mine[line], theirs[line]) for line in mine.keys() & theirs.keys())
