"""The patches above a change of some files: carried three-way, path by path.

Only what meets the change is merged; everything else stays byte for byte. A patch that conflicts
stays as it was, and so do those above it that touch the same files: they wait until it is resolved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from patchq.carry.merge import Blob
from patchq.carry.message import ident
from patchq.gitstore.fastimport import Write
from patchq.gitstore.files import parents
from patchq.gitstore.store import Store
from patchq.paths import show
from patchq.queue.diff import FileDiff, same_path
from patchq.queue.patch import Patch, quote
from patchq.work.onto import Unknown, before, merged
from patchq.work.report import Left

START = b"diff --git "
_AS_KNOWN = Blob("", b"")


@dataclass(frozen=True)
class Restacked:
    """`patches` are all of them, as they read now; `carried` the names of those that read anew.

    `emptied` touch nothing any more (`patches` has them with an empty diff), `left` could not be
    carried. `ours` are the changed paths after the last patch that could be.
    """

    patches: tuple[Patch, ...]
    carried: tuple[str, ...]
    emptied: tuple[str, ...]
    left: tuple[Left, ...]
    ours: Mapping[bytes, Blob | None] = field(repr=False)


@dataclass(frozen=True)
class _Side:
    """A path before and after a patch."""

    path: bytes
    before: Blob | None
    after: Blob | None


def restack(
    store: Store, patches: Sequence[Patch], ours: Mapping[bytes, Blob | None], below: str
) -> Restacked:
    """Carry `patches`; `ours` are the files that they find otherwise than they know them.

    `below` names what changed, for conflict markers.
    """
    now = dict(ours)
    waits: dict[bytes, str] = {}
    anew: dict[str, list[_Side]] = {}
    left: list[Left] = []
    for patch in patches:
        if not names_any(patch, ours) or patch.files is None:
            continue  # what only git reads stays as it is: `push` tells how it stands
        if patch.files == () and _lost(patch, now):
            anew[patch.name] = []
            continue
        met = [file for file in patch.files if file.path in now or file.path in waits]
        made = [file.path for file in patch.files if not file.deleted]
        ways = [(path, why) for path in made if (why := _in_the_way(path, now))]
        waiting = [waits[file.path] for file in met if file.path in waits]
        sides, clashes = ([], []) if waiting else _carried(store, patch, met, now, below)
        clashes = clashes or ways
        if waiting or clashes:
            left.append(Left(patch.name, tuple(clashes), waiting[0] if waiting else ""))
            for file in met:
                if file.path in waits or now.pop(file.path, _AS_KNOWN) is not _AS_KNOWN:
                    waits[file.path] = patch.name
            continue
        for side in sides:
            now[side.path] = side.after
        if sides:
            anew[patch.name] = sides
    changed = _texts(store, [patch for patch in patches if patch.name in anew], anew)
    result = tuple(patch.with_diff(changed.get(patch.name, patch.diff)) for patch in patches)
    return Restacked(
        result,
        tuple(name for name, diff in changed.items() if diff),
        tuple(name for name, diff in changed.items() if not diff),
        tuple(left),
        now,
    )


def _carried(
    store: Store,
    patch: Patch,
    met: Sequence[FileDiff],
    now: dict[bytes, Blob | None],
    below: str,
) -> tuple[list[_Side], list[tuple[bytes, str]]]:
    """What the patch makes of the changed paths, and where it cannot.

    A path that reads as the patch knows it is none of them any more.
    """
    sides: list[_Side] = []
    clashes: list[tuple[bytes, str]] = []
    for file in met:
        here = now[file.path]
        try:
            if here == before(store, file, here):
                del now[file.path]
                continue
            labels = (below, f"{patch.file} before", patch.file)
            outcome = merged(store, patch, file, here, labels)
        except Unknown as error:
            clashes.append((file.path, str(error)))
            continue
        if outcome.seen.merge == "conflict":
            clashes.append((file.path, outcome.seen.kind.replace("upstream", "below")))
        else:
            sides.append(_Side(file.path, here, outcome.result))
    return sides, clashes


def _texts(
    store: Store, patches: Sequence[Patch], anew: Mapping[str, list[_Side]]
) -> dict[str, bytes]:
    """The diffs of the patches that read anew; empty where one changes nothing any more."""
    if not patches:
        return {}
    with store.fast_import(compression=0) as importer:
        for patch in patches:
            for blobs in ([(s.path, s.before) for s in anew[patch.name]],
                          [(s.path, s.after) for s in anew[patch.name]]):  # fmt: skip
                writes = [Write(path, b.mode, b.data) for path, b in blobs if b is not None]
                importer.commit(b"", ident(patch), None, writes)
        trees = store.objects.trees_of(importer.finish())
    diffs = store.diff_texts(list(zip(trees[::2], trees[1::2], strict=True)))
    out = {}
    for patch, diff in zip(patches, diffs, strict=True):
        sections = split(patch.diff) if patch.files else {}
        for side in anew[patch.name]:
            sections.pop(side.path, None)
        sections |= split(diff)
        out[patch.name] = b"".join(sections[path] for path in sorted(sections))
    return out


def names_any(patch: Patch, paths: Iterable[bytes]) -> bool:
    """Whether the patch may touch one of the paths: whatever it touches, it names.

    Taking all of a long series apart takes longer than everything else.
    """
    for path in paths:
        if path in patch.diff or quote(path) in patch.diff:
            return True
        # A file may want the place of a folder above.
        if any(b" %b\n" % quote(b"b/" + folder) in patch.diff for folder in parents(path)):
            return True
    return False


def _lost(patch: Patch, now: Mapping[bytes, Blob | None]) -> bool:
    """Whether a patch that changes nothing names a file that is gone."""
    gone = [path for path, blob in now.items() if blob is None]
    return any(b"\nrename from %b\n" % quote(path) in patch.diff for path in gone)


def _in_the_way(path: bytes, now: Mapping[bytes, Blob | None]) -> str:
    """What of the changed files stands where the file at `path` would."""
    above = set(parents(path))
    for other, blob in now.items():
        if blob is not None and (other in above or path in parents(other)):
            return f"{show(other)} stands in its way"
    return ""


def split(diff: bytes) -> dict[bytes, bytes]:
    """A canonical diff's text by path. A change of type has two sections of one path."""
    found: dict[bytes, bytes] = {}
    path = b""
    for line in diff.removesuffix(b"\n").split(b"\n") if diff else ():
        if line.startswith(START):
            path = same_path(line[len(START) :])
        found[path] = found.get(path, b"") + line + b"\n"
    return found
