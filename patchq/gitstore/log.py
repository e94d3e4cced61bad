"""The commits between two releases: who, when, in which words, which paths, which lines.

Two passes. The first reads commits and the ids of what they changed: trees suffice, so that a
partial clone need not fetch. The second reads the diffs of the commits that matter, as a stream,
and keeps of them no more than the lines that somebody asked for.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

from patchq.errors import PatchqError
from patchq.gitstore.contents import PLAIN
from patchq.gitstore.files import write
from patchq.gitstore.store import Change, Store, raw_changes

_AT_ONCE = 2
"""Of git's processes that compare: more take no less time, for one thread reads what they say."""
_FEW = 32
"""Commits that one of them compares sooner than a second one starts."""
_DIFFS = ("diff-tree", "--stdin", "--root", "-r", "-p", "-U0", *PLAIN)
_FORMAT = "%H%x01%P%x01%an%x01%cs%x01%B"
_VERSION = b"3"


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit, with what it changed against its first parent.

    `date` is the day on which it was committed; texts are UTF-8 with replacements.
    """

    id: str
    parents: tuple[str, ...]
    author: str
    date: str
    subject: str
    body: str
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Lines:
    """What one commit did to the lines that were asked for: lines (without ends), how often.

    Moves cancel: a line counts as added only as often as it is not removed by the same commit.
    `size` counts all lines that it adds and removes and that are not blank.
    """

    added: Mapping[bytes, int]
    removed: Mapping[bytes, int]
    size: int = 0


def commits(store: Store, old: str, new: str) -> list[Commit]:
    """The commits of `new` that `old` does not have, parents before children; kept in the store.

    `old` and `new` are ids.
    """
    kept = store.path / "patchq-log" / f"{old}-{new}"
    try:
        out = kept.read_bytes()
    except OSError:
        args = ["log", "--topo-order", "--reverse", "--diff-merges=first-parent", "--raw", "-z"]
        args += ["--no-renames", "--no-abbrev", "--no-color", f"--format=tformat:{_FORMAT}"]
        out = store.git([*args, new, f"^{old}", "--"]).out
        write(kept, out)
    return list(_commits(out))


def _commits(out: bytes) -> Iterator[Commit]:
    """`HEAD NUL [LF :MODE MODE ID ID STATUS NUL PATH NUL ...]`, repeated; a head is _FORMAT."""
    fields = out.split(b"\0")
    at, end = 0, len(fields) - 1
    while at < end:
        oid, parents, author, date, message = (
            part.decode("utf-8", "replace") for part in fields[at].split(b"\x01", 4)
        )
        start = at = at + 1
        while at < end and fields[at].lstrip(b"\n")[:1] == b":":
            at += 2
        raw = b"\0".join(fields[start:at]).lstrip(b"\n")
        subject, _, body = message.partition("\n")
        yield Commit(
            oid, tuple(parents.split()), author, date, subject, body, tuple(raw_changes(raw))
        )


def lines(store: Store, chosen: Sequence[Commit], wanted: Collection[bytes]) -> dict[str, Lines]:
    """What each of the commits did to the `wanted` lines, by id; kept in the store.

    Merges are read against their first parent.
    """
    pairs = [(each.id, each.parents[0] if each.parents else "") for each in chosen]
    names = sorted(wanted)
    key = hashlib.sha256(_VERSION)
    for part in (*(oid.encode() for oid, _ in pairs), b"", *names):
        key.update(b"%d %b" % (len(part), part))
    kept = store.path / "patchq-lines" / key.hexdigest()
    try:
        return _thawed(kept.read_bytes(), names)
    except (OSError, ValueError, LookupError, TypeError):
        found = _read(store, pairs, frozenset(names))
        write(kept, _frozen(found, names))
        return found


def _read(
    store: Store, pairs: Sequence[tuple[str, str]], wanted: frozenset[bytes]
) -> dict[str, Lines]:
    # In turns: commits that lie beside one another are of a kind, and as large.
    count = _AT_ONCE if len(pairs) >= _FEW else 1
    found: dict[str, Lines] = {}
    # The streams end first, also at Ctrl-C: a thread that reads one waits for its end.
    with ThreadPoolExecutor(count) as pool, ExitStack() as streams:
        told = [
            streams.enter_context(store.stream(_DIFFS, _asked(pairs[first::count])))
            for first in range(count)
        ]
        for part in pool.map(lambda out: _counted(out, wanted), told):
            found |= part
    return {oid: found[oid] for oid, _ in pairs if oid in found}  # git names no empty one


def _asked(pairs: Sequence[tuple[str, str]]) -> bytes:
    return "".join(f"{oid} {parent}".rstrip() + "\n" for oid, parent in pairs).encode()


def _counted(out: Iterable[bytes], wanted: frozenset[bytes]) -> dict[str, Lines]:
    found: dict[str, Lines] = {}
    oid = ""
    added: Counter[bytes] = Counter()
    removed: Counter[bytes] = Counter()
    size = 0
    inside = False
    for line in out:
        sign = line[:1]
        if inside and sign == b"+":
            text = line[1:].rstrip()
            size += bool(text)
            if text in wanted:
                added[text] += 1
        elif inside and sign == b"-":
            text = line[1:].rstrip()
            size += bool(text)
            if text in wanted:
                removed[text] += 1
        elif sign == b"@":
            inside = True
        elif line.startswith(b"diff --git "):
            inside = False
        elif len(line) == 41 and line[:40].isalnum():
            found[oid] = Lines(added - removed, removed - added, size)
            oid, inside = line[:40].decode(), False
            added, removed, size = Counter(), Counter(), 0
    found[oid] = Lines(added - removed, removed - added, size)
    del found[""]
    return found


def _frozen(found: Mapping[str, Lines], names: Sequence[bytes]) -> bytes:
    number = {name: place for place, name in enumerate(names)}
    return json.dumps(
        {
            oid: [
                [[number[line], count] for line, count in each.added.items()],
                [[number[line], count] for line, count in each.removed.items()],
                each.size,
            ]
            for oid, each in found.items()
        }
    ).encode()


def _thawed(data: bytes, names: Sequence[bytes]) -> dict[str, Lines]:
    return {
        oid: Lines(
            {names[place]: count for place, count in added},
            {names[place]: count for place, count in removed},
            size,
        )
        for oid, (added, removed, size) in json.loads(data).items()
    }


def words(store: Store, ids: Sequence[str]) -> list[Commit]:
    """The commits with these ids, without what they changed."""
    if not ids:
        return []
    args = ["log", "--no-walk=unsorted", "--stdin", "-z", f"--format=tformat:{_FORMAT}"]
    return list(_commits(store.git(args, input=_listed(ids)).out))


def bring(store: Store, chosen: Sequence[Commit], *, offline: bool = False) -> None:
    """Fetch what a partial clone lacks of the contents that `chosen` changed, by one request.

    One by one on demand would take a request each. Raises PatchqError where they cannot be fetched.
    """
    if store.git(["config", "--get", "remote.origin.promisor"], ok=(0, 1)).code != 0:
        return
    wanted = {oid for each in chosen for c in each.changes for oid in (c.old_oid, c.new_oid)}
    asked = [oid for each in chosen for oid in (each.id, *each.parents[:1])]
    args = ["rev-list", "--objects", "--no-walk", "--missing=print", "--stdin"]
    done = store.git(args, input=_listed(asked))
    missing = {line[1:] for line in done.out.decode().splitlines() if line.startswith("?")}
    if missing & wanted and offline:
        raise PatchqError(
            f"{len(missing & wanted)} contents of upstream's history are not in the store, and"
            " --offline forbids to fetch them",
            "run it once without --offline",
        )
    if missing & wanted:
        store.git(
            ["fetch", "--quiet", "--no-tags", "--no-filter", "--stdin", "origin"],
            input=_listed(sorted(missing & wanted)),
            network=True,
        )


def _listed(oids: Sequence[str]) -> bytes:
    return "".join(f"{oid}\n" for oid in oids).encode()
