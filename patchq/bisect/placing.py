"""One patch on files that are not those it was written on, as a sync would carry it.

Where its files read as at its own end, it is put as it stands. Else it is merged three ways, and
what the merge shows is judged like in a sync: what would have to be asked there does not go here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from patchq.carry import text
from patchq.carry.merge import Blob, Track, merge
from patchq.carry.moves import Merge, follow
from patchq.carry.renames import Renames
from patchq.gitstore.fastimport import Write
from patchq.gitstore.objects import GITLINK, TREE, Entry
from patchq.gitstore.store import Store
from patchq.judge.model import Observation
from patchq.judge.verdict import judge
from patchq.paths import show
from patchq.queue.patch import Patch

Word = Literal["exact", "merged", "there", "misfit"]


@dataclass(frozen=True)
class Version:
    """A patch as one end has it.

    `patch` stands in the end's file, `parts` is the same with a diff that can be taken apart;
    `before` and `after` are the trees around it there, `base` is that end's base tree.
    """

    patch: Patch
    parts: Patch
    before: str
    after: str
    base: str

    @property
    def paths(self) -> tuple[bytes, ...]:
        return tuple(file.path for file in self.parts.files or ())


@dataclass(frozen=True)
class Put:
    """What became of a patch: "exact", "merged", "there" (nothing of it is left to do), or
    "misfit", and why. `writes` are the files that it leaves, None where absent.
    """

    word: Word
    writes: Mapping[bytes, Blob | None] = field(default_factory=dict)
    why: str = ""


class Standing:
    """The files of a tree while patches are put on it, one after the other."""

    def __init__(self, store: Store, tree: str) -> None:
        self._store = store
        self._tree = tree
        self._now: dict[bytes, Blob | None] = {}

    def at(self, path: bytes) -> Blob | None:
        """The file at `path` now; a folder or a submodule is none."""
        if path not in self._now:
            self._now[path] = _blob(self._store, self._tree, path)
        return self._now[path]

    def take(self, writes: Mapping[bytes, Blob | None]) -> list[Write]:
        """Move on; what of it changes anything, for the commit that stands for the patch."""
        out = []
        for path, blob in writes.items():
            if not same(self.at(path), blob):
                out.append(
                    Write(path) if blob is None else Write(path, blob.mode, blob.data),
                )
            self._now[path] = blob
        return out

    def obstacle(self, path: bytes, leaving: Iterable[bytes]) -> str:
        """What stands in the way of a new file: a folder with files, or a file above it."""
        gone = set(leaving) | {name for name, blob in self._now.items() if blob is None}
        entry = self._entry(path)
        there = {name for name, blob in self._now.items() if blob is not None}
        if entry is not None and entry.mode == TREE:
            there |= {path + b"/" + name for name, _ in self._store.objects.walk(entry.oid)}
        if any(name.startswith(path + b"/") for name in there - gone):
            return "a folder stands there"
        parts = path.split(b"/")
        for end in range(1, len(parts)):
            above = b"/".join(parts[:end])
            if above not in gone and self.at(above) is not None:
                return f"there is a file {show(above)}, not a folder"
        return ""

    def _entry(self, path: bytes) -> Entry | None:
        return self._store.objects.lookup(self._tree, path)


def put(store: Store, version: Version, on: Standing, base: str) -> Put:
    """Where `version` leads on the files `on`, whose bare tree is `base`. Nothing is moved on."""
    sides = {
        path: (_blob(store, version.before, path), _blob(store, version.after, path))
        for path in version.paths
    }
    as_there = all(same(on.at(path), before) for path, (before, _) in sides.items())
    if as_there and not _blocked(sides, on):
        return Put("exact", {path: after for path, (_, after) in sides.items()})
    return _merged(store, version, on, base, sides)


def _merged(
    store: Store,
    version: Version,
    on: Standing,
    base: str,
    sides: Mapping[bytes, tuple[Blob | None, Blob | None]],
) -> Put:
    renames = Renames(store, version.base, base)
    merges: list[Merge] = []
    labels = ("here", f"{version.patch.file} before", version.patch.file)
    names = {path: _name(store, path, version, on, renames, base) for path in sides}
    leaving = [names[path] for path, (_, after) in sides.items() if after is None]
    for file in version.parts.files or ():
        before, after = sides[file.path]
        new_path = names[file.path]
        now = on.at(new_path)
        track = Track(
            path=file.path,
            new_path=new_path,
            old=before,
            new=before if same(now, before) else now,
            gain=text.Gain(
                None, before.data if before is not None else b"", now.data if now else b""
            ),
            upstream_changed=not same(now, before),
        )
        obstacle = ""
        if now is None and after is not None:
            obstacle = on.obstacle(new_path, leaving)
        hunks = () if file.whole or file.binary else file.hunks
        outcome = merge(store, track, after, hunks, labels, obstacle)
        merges.append(Merge(track, after, hunks, outcome))
    merges = follow(store, merges, labels)
    verdict = judge(Observation(tuple(each.seen for each in merges)))
    if verdict.action == "drop":
        return Put("there", why=verdict.verdict)
    if verdict.action == "ask":
        torn = [f"{show(each.path)} ({each.kind})" for each in verdict.conflicts]
        told = ", ".join(torn) or "; ".join(each.detail for each in verdict.evidence)
        return Put("misfit", why=f"{version.patch.file} conflicts there: {told}")
    writes = {each.track.new_path: each.outcome.result for each in merges}
    if all(same(on.at(path), blob) for path, blob in writes.items()) and writes:
        return Put("there", why="nothing of it is left to do")
    return Put("merged", writes)


def _name(
    store: Store, path: bytes, version: Version, on: Standing, renames: Renames, base: str
) -> bytes:
    """What the file is called on `base`: upstream may have moved it since."""
    if version.base == base or on.at(path) is not None:
        return path
    existed = store.objects.lookup(version.base, path) is not None
    if store.objects.lookup(base, path) is not None:
        return path  # a patch before this one took it away
    return renames.new_name(path, existed=existed)


def _blocked(sides: Mapping[bytes, tuple[Blob | None, Blob | None]], on: Standing) -> bool:
    leaving = [path for path, (_, after) in sides.items() if after is None]
    return any(
        on.at(path) is None and after is not None and on.obstacle(path, leaving)
        for path, (_, after) in sides.items()
    )


def same(one: Blob | None, other: Blob | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.mode == other.mode and one.data == other.data


def carries(store: Store, old: Version, new: Version) -> bool:
    """Whether `new` is what `old` comes to where `new` stands: carried, and nothing else."""
    on = Standing(store, new.before)
    found = put(store, old, on, new.base)
    if found.word not in ("exact", "merged"):
        return not old.paths and not new.paths
    paths = {*found.writes, *new.paths}
    after = {path: found.writes.get(path, on.at(path)) for path in paths}
    return all(same(blob, _blob(store, new.after, path)) for path, blob in after.items())


def _blob(store: Store, tree: str, path: bytes) -> Blob | None:
    entry = store.objects.lookup(tree, path)
    if entry is None or entry.mode in (TREE, GITLINK):
        return None
    return Blob(entry.mode, store.objects.blob(entry.oid))
