"""Resolved conflicts, kept below `series/resolutions/` and used where the same three blobs meet.

A file holds one path of one resolved patch: the ids of its three versions and of the result, and
the result as a diff against ours (upstream's side with the patches before). What was edited beside
the conflicts belongs to them: it is used only where all of the same conflicts meet (`With`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from patchq.carry.clash import Key, digest, key_of, version
from patchq.carry.merge import Blob, Outcome, Track
from patchq.carry.moves import Merge
from patchq.carry.tracks import Misfit, after
from patchq.errors import PatchqError
from patchq.gitstore.fastimport import Ident, Write
from patchq.gitstore.store import Store
from patchq.judge.model import FileSeen
from patchq.paths import show
from patchq.queue import diff as diffs
from patchq.queue.diff import NotCanonical
from patchq.queue.header import one_line
from patchq.queue.patch import quote

FOLDER = "resolutions"
_FIELDS = ("Patch", "Path", "Conflict", "Releases", "Base", "Ours", "Theirs", "Result", "With")
_HEAD = b"Patchq-Resolution: 1\n"
_VERSION = re.compile(r"absent|(?:100644|100755|120000) [0-9a-f]{40}")
NOBODY = Ident(b"patchq", b"patchq", 0)


@dataclass(frozen=True)
class Resolution:
    """One resolved path. `file` is its name below the folder, `beside` the digest of the
    conflicts that it was edited beside, empty where the path conflicted itself. `again`: it was
    recorded by an earlier sync.
    """

    file: str
    patch: str
    key: Key
    result: str
    beside: str
    text: bytes = field(repr=False)
    diff: bytes = field(repr=False)
    again: bool = False

    @property
    def says(self) -> str:
        """What it is, for the report."""
        where = show(self.key.path)
        what = (
            f"{where} edited beside a conflict" if self.beside else f"conflict in {where} resolved"
        )
        return f"{what} before, used again" if self.again else what

    def content(self, ours: Blob | None) -> Blob | None:
        """The resolved file. Raises PatchqError where the diff does not give what is promised."""
        try:
            files = diffs.parse(self.diff, self.file)
            if [each.path for each in files] not in ([], [self.key.path]):
                raise self._lies("it changes another path")
            blob = after(ours, files[0], self) if files else ours
        except (Misfit, NotCanonical) as error:
            raise self._lies(str(error)) from error
        if version(blob) != self.result:
            raise self._lies("its diff gives another content than it says")
        return blob

    def _lies(self, why: str) -> PatchqError:
        return _damaged(self.file, why)


class Resolutions:
    """All that are known; `fresh` ones (of an open session) come before recorded ones."""

    def __init__(self, recorded: Iterable[Resolution] = (), fresh: Iterable[Resolution] = ()):
        self._known: dict[Key, list[Resolution]] = {}
        self._beside: dict[str, list[Resolution]] = {}
        for each in (*fresh, *recorded):
            if each.beside:
                self._beside.setdefault(each.beside, []).append(each)
            else:
                self._known.setdefault(each.key, []).append(each)

    def __bool__(self) -> bool:
        return bool(self._known or self._beside)

    def of(self, key: Key, patch: str) -> Resolution | None:
        """The resolution of this very conflict; of several, one of the same patch."""
        found = self._known.get(key, [])
        return min(found, key=lambda each: each.patch != patch, default=None)

    def edits(self, conflicts: str) -> Sequence[Resolution]:
        """What was edited beside these conflicts (their digest)."""
        seen: dict[bytes, Resolution] = {}
        for each in self._beside.get(conflicts, ()):
            seen.setdefault(each.key.path, each)
        return tuple(seen.values())


def resolve(
    known: Resolutions, patch: str, merges: Sequence[Merge], at: Callable[[bytes], Track]
) -> tuple[list[Merge], tuple[Resolution, ...]]:
    """The merges of `patch` with what is known of their conflicts, and what was used for it.

    `at` gives the track of a path of the new release. Nothing is used where an edit that belongs
    to the resolution meets another content.
    """
    out, used = list(merges), []
    keys = [key_of(each) for each in merges]
    torn = {each.track.new_path for each in merges if each.seen.merge == "conflict"}
    for place, key in enumerate(keys):
        if key.path in torn and (found := known.of(key, patch)) is not None:
            used.append(found)
            out[place] = _with(out[place], found)
    if any(each.seen.merge == "conflict" for each in out):
        return out, tuple(used)
    for edit in known.edits(bond(merges)):
        place = next((n for n, key in enumerate(keys) if key.path == edit.key.path), len(out))
        if place == len(out):
            track = at(edit.key.path)
            if edit.key != untouched(track.new_path, track.new):
                return list(merges), ()
            seen = FileSeen(track.path, track.new_path, "clean")
            out.append(Merge(track, track.old, (), Outcome(track.new, seen)))
        elif edit.key != keys[place]:
            return list(merges), ()
        used.append(edit)
        out[place] = _with(out[place], edit)
    return out, tuple(used)


def bond(merges: Sequence[Merge]) -> str:
    """What edits beside the conflicts of a patch are bound to: those, or without any, all of it."""
    torn = [key_of(each) for each in merges if each.seen.merge == "conflict"]
    return digest(torn or map(key_of, merges))


def untouched(path: bytes, blob: Blob | None) -> Key:
    """The key of a path that the patch does not touch, as it stands before it."""
    return Key(path, *[version(blob)] * 3)


def _with(merge: Merge, resolution: Resolution) -> Merge:
    result = resolution.content(merge.sides[1])
    word: Literal["empty", "clean"] = "empty" if result == merge.track.new else "clean"
    seen = replace(merge.seen, merge=word, kind="", doubles=())
    return replace(merge, outcome=Outcome(result, seen))


@dataclass(frozen=True)
class Edit:
    """One path of a resolved patch: what met there, what became of it. `kind`: of conflict."""

    key: Key
    ours: Blob | None = field(repr=False)
    result: Blob | None = field(repr=False)
    kind: str = ""


def make(
    store: Store, patch: str, releases: tuple[str, str], edits: Sequence[Edit], beside: str
) -> tuple[Resolution, ...]:
    """The records of one resolved patch; `beside` is the digest of its conflicts."""
    with store.fast_import(compression=0) as importer:
        for edit in edits:
            for blob in (edit.ours, edit.result):
                write = [Write(edit.key.path, blob.mode, blob.data)] if blob is not None else []
                importer.commit(b"resolution", NOBODY, None, write)
        trees = store.objects.trees_of(importer.finish())
    texts = store.diff_texts(list(zip(trees[::2], trees[1::2], strict=True)))
    made = []
    for edit, diff in zip(edits, texts, strict=True):
        values = {
            "Patch": patch,
            "Path": quote(edit.key.path).decode(),
            "Conflict": one_line(edit.kind) or "none",
            "Releases": one_line(f"{releases[0]} to {releases[1]}"),
            "Base": edit.key.base,
            "Ours": edit.key.ours,
            "Theirs": edit.key.theirs,
            "Result": version(edit.result),
            "With": "" if edit.kind else beside,
        }
        lines = "".join(f"{name}: {values[name]}\n" for name in _FIELDS if values[name])
        text = _HEAD + lines.encode("utf-8", "surrogateescape") + b"---\n" + diff
        made.append(parse(_file_name(patch, edit, beside), text))
    return tuple(made)


def _file_name(patch: str, edit: Edit, beside: str) -> str:
    plain = re.sub(rb"[^A-Za-z0-9._+-]+", b"-", edit.key.path).decode()[-80:].lstrip(".-")
    unique = edit.key.digest if edit.kind else beside[:4] + edit.key.digest
    return f"{patch}/{plain}-{unique[:8]}.diff"


def parse(file: str, text: bytes) -> Resolution:
    """Raises PatchqError where `text` is no resolution of ours, or a damaged one."""
    head, found, diff = text.partition(b"\n---\n")
    values: dict[str, str] = {}
    if not found or not text.startswith(_HEAD):
        raise _damaged(file, "it does not begin as one")
    for line in head.decode("utf-8", "surrogateescape").split("\n")[1:]:
        name, colon, value = line.partition(": ")
        if not colon or name not in _FIELDS or name in values:
            raise _damaged(file, f"it has a line {line!r}")
        values[name] = value
    if set(_FIELDS) - {"With"} - values.keys():
        raise _damaged(file, "a field is missing")
    versions = [values[name] for name in ("Base", "Ours", "Theirs", "Result")]
    if not all(_VERSION.fullmatch(each) for each in versions):
        raise _damaged(file, "an id is damaged")
    path = diffs.unquote(values["Path"].encode("utf-8", "surrogateescape"))
    key = Key(path, *versions[:3])
    return Resolution(file, values["Patch"], key, versions[3], values.get("With", ""), text, diff)


def read(folder: Path) -> tuple[Resolution, ...]:
    """Those recorded in the series folder `folder`, in the order of their names.

    Raises PatchqError for a file that is not one.
    """
    top = folder / FOLDER
    if not top.is_dir():
        return ()
    paths = sorted(path for path in top.rglob("*") if path.is_file())
    found = [parse(path.relative_to(top).as_posix(), path.read_bytes()) for path in paths]
    return tuple(replace(each, again=True) for each in found)


def changes(folder: str, used: Iterable[Resolution]) -> Mapping[str, bytes]:
    """The files to be recorded, by path from the project's root."""
    return {f"{folder}/{FOLDER}/{each.file}": each.text for each in used}


def _damaged(file: str, why: str) -> PatchqError:
    return PatchqError(
        f"{FOLDER}/{file} in the series folder is no sound resolution: {why}",
        "restore it from git, or remove it: the conflict is then asked again",
    )
