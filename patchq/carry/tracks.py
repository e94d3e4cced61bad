"""All paths that a series touches, on both sides, and how each patch moves them on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from patchq.carry import text
from patchq.carry.ahead import ahead
from patchq.carry.merge import Blob, Track, merge
from patchq.carry.moves import Merge, follow
from patchq.carry.renames import Renames
from patchq.errors import PatchqError
from patchq.gitstore.fastimport import Write
from patchq.gitstore.objects import GITLINK, TREE, Entry
from patchq.gitstore.store import Store
from patchq.paths import show
from patchq.queue import binary
from patchq.queue.diff import FileDiff
from patchq.queue.patch import Patch


class Side(Protocol):
    @property
    def tree(self) -> str: ...


class Named(Protocol):
    """A patch or a resolution: a diff with the name of its file."""

    @property
    def file(self) -> str: ...


def after(base: Blob | None, file: FileDiff, patch: Named) -> Blob | None:
    """The file as `patch` leaves it.

    Raises Misfit where the patch does not fit `base`.
    """
    if (base is None) != file.added:
        state = "is not there" if base is None else "is there already"
        raise _misfit(patch, file, f"the file {state}")
    if file.deleted:
        if base is not None and not _takes_all(base, file):
            raise _misfit(patch, file, "what it removes is not all that stands there")
        return None
    if base is not None and base.mode != file.old_mode:
        raise _misfit(patch, file, f"its mode is {base.mode}, not {file.old_mode}")
    if file.binary:
        data = b"" if base is None or file.whole else base.data
        return Blob(file.new_mode, binary.new_content(file.raw, data, patch.file))
    lines: Sequence[bytes] = [] if base is None or file.whole else base.lines
    if not file.hunks and base is not None and not file.whole:
        return Blob(file.new_mode, base.data)
    if not text.fits(lines, file.hunks):
        raise _misfit(patch, file, "other lines stand where it expects its context")
    return Blob(file.new_mode, b"".join(text.replace(lines, text.atoms_of(file.hunks))))


def _takes_all(base: Blob, file: FileDiff) -> bool:
    """Whether a deletion takes away what stands there: a patch below may have changed it since."""
    if file.binary:
        return base.oid == file.old_oid
    return base.data == b"".join(line for hunk in file.hunks for line in hunk.old)


class Misfit(PatchqError):
    """A patch does not fit its own base at the very lines that it names."""


def _misfit(patch: Named, file: FileDiff, why: str) -> Misfit:
    return Misfit(
        f"{patch.file} does not apply to its own base in {show(file.path)}: {why}",
        "see `patchq check`; git knows the last good state of the series folder",
    )


def files_of(patch: Patch) -> tuple[FileDiff, ...]:
    """The patch's files; the series was put in canonical form before."""
    assert patch.files is not None, patch.file
    return patch.files


class Tracks:
    """The state of every touched path while the fold goes through the series."""

    def __init__(self, store: Store, old: Side, new: Side, patches: Sequence[Patch]) -> None:
        self._store = store
        self._old_tree = old.tree
        self._new_tree = new.tree
        paths = list(dict.fromkeys(file.path for patch in patches for file in files_of(patch)))
        objects = store.objects
        before = {path: _file(objects.lookup(old.tree, path), path) for path in paths}
        same_place = {path: objects.lookup(new.tree, path) for path in paths}
        renames = Renames(store, old.tree, new.tree)
        names = {
            path: path
            if old.tree == new.tree or same_place[path] is not None
            else renames.new_name(path, existed=before[path] is not None)
            for path in paths
        }
        now = {
            path: same_place[path] if names[path] == path else objects.lookup(new.tree, names[path])
            for path in paths
        }
        # Upstream's diff is made by another process while the contents are read by this one.
        with ahead(lambda: self._read_sections(old.tree, new.tree, before, now, names)) as sections:
            blobs = objects.blobs(
                entry.oid
                for entry in (*before.values(), *now.values())
                if entry and _is_file(entry)
            )
        self._sections = sections()
        self.tracks = {
            path: self._track(path, names[path], before[path], now[path], blobs) for path in paths
        }

    def _read_sections(
        self,
        old: str,
        new: str,
        before: dict[bytes, Entry | None],
        now: dict[bytes, Entry | None],
        names: dict[bytes, bytes],
    ) -> dict[bytes, tuple[list[text.Gap], bytes]]:
        """Upstream's own change of each path that it changed in place, by one process."""
        changed = [
            path
            for path, was in before.items()
            if (entry := now[path]) is not None
            and was is not None
            and names[path] == path
            and _is_file(entry)
            and was.oid != entry.oid
        ]
        if not changed:
            return {}
        diff = self._store.hunks(old, new, changed)
        return {path: (gaps, section) for path, gaps, section in text.sections(diff)}

    def _track(
        self,
        path: bytes,
        new_path: bytes,
        was: Entry | None,
        entry: Entry | None,
        blobs: dict[str, bytes],
    ) -> Track:
        old = Blob(was.mode, blobs[was.oid]) if was is not None else None
        new = Blob(entry.mode, blobs[entry.oid]) if entry and _is_file(entry) else None
        if old is not None and new is not None and was == entry:
            new = old
        section = self._sections.get(path)
        gaps = section[0] if section and b"\nBinary files " not in section[1] else None
        if old is not None and new is not None and old.data == new.data:
            gaps = []
        return Track(
            path=path,
            new_path=new_path,
            old=old,
            new=new,
            gaps=gaps,
            gain=text.Gain(
                section[1] if section else None,
                old.data if old is not None else b"",
                new.data if new is not None else b"",
            ),
            upstream_changed=was != entry,
        )

    def merge(self, patch: Patch, labels: tuple[str, str, str]) -> list[Merge]:
        """Merge every path of `patch`; nothing is moved on yet."""
        merges: list[Merge] = []
        files = files_of(patch)
        leaving = {self.tracks[file.path].new_path for file in files if file.deleted}
        for file in files:
            track = self.tracks[file.path]
            theirs = after(track.old, file, patch)
            hunks = () if file.whole or file.binary else file.hunks
            obstacle = ""
            if track.new is None and theirs is not None:
                obstacle = self._obstacle(track.new_path, leaving)
            outcome = merge(self._store, track, theirs, hunks, labels, obstacle)
            merges.append(Merge(track, theirs, hunks, outcome))
        return follow(self._store, merges, labels)

    def at(self, new_path: bytes) -> Track:
        """The track of a path of the new side; one that no patch touches gets its own."""
        for track in self.tracks.values():
            if track.new_path == new_path:
                return track
        objects = self._store.objects
        found = [
            _file(objects.lookup(tree, new_path), new_path)
            for tree in (self._old_tree, self._new_tree)
        ]
        old, new = (
            Blob(entry.mode, objects.blob(entry.oid)) if entry is not None else None
            for entry in found
        )
        return self.tracks.setdefault(new_path, Track(new_path, new_path, old, new))

    def _obstacle(self, path: bytes, leaving: set[bytes]) -> str:
        """What stands in the way of a new file on the new side: a folder, or a file above it.

        `leaving` are the paths that the patch itself removes.
        """
        gone = leaving | {track.new_path for track in self.tracks.values() if track.new is None}
        objects = self._store.objects
        entry = objects.lookup(self._new_tree, path)
        if entry is not None and entry.mode == TREE:
            below = (path + b"/" + name for name, _ in objects.walk(entry.oid))
            return "a folder stands there upstream" if any(n not in gone for n in below) else ""
        parts = path.split(b"/")
        for end in range(1, len(parts)):
            above = b"/".join(parts[:end])
            if above not in gone and _is_file(objects.lookup(self._new_tree, above)):
                return f"upstream has a file {show(above)}, not a folder"
        return ""

    def commit(self, merges: list[Merge], *, keep: bool) -> list[Write]:
        """Move both sides on; what is to be written on the new side."""
        writes: list[Write] = []
        for each in merges:
            track, result = each.track, each.outcome.result
            track.old = each.theirs
            if not keep:
                track.gaps = None
                continue
            if result is None and track.new is not None:
                writes.append(Write(track.new_path))
            elif result is not None and result is not track.new and result != track.new:
                writes.append(Write(track.new_path, result.mode, result.data))
            track.new = result
            track.gaps = each.outcome.gaps
            if result is not None and result is track.old:
                track.gaps = []
        return writes


def _is_file(entry: Entry | None) -> bool:
    return entry is not None and entry.mode not in (TREE, GITLINK)


def _file(entry: Entry | None, path: bytes) -> Entry | None:
    if entry is not None and entry.mode == GITLINK:
        raise PatchqError(
            f"{show(path)} is a submodule of the base", "patches on submodules are not supported"
        )
    return entry if _is_file(entry) else None
