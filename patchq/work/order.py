"""`delete`, `hold`, `unhold`, `move`: which patches are applied, and in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from patchq.carry import replay, text
from patchq.carry.arrange import ChangeReport, Wish, opened, rearranged
from patchq.carry.replay import Change, File
from patchq.carry.workspace import Queue
from patchq.errors import PatchqError, UsageError
from patchq.gitstore.objects import blob_id
from patchq.gitstore.store import Store
from patchq.paths import show
from patchq.progress import SILENT, Progress
from patchq.queue.diff import FileDiff
from patchq.queue.patch import Patch
from patchq.queue.series import Line, held_line


def delete(
    queue: Queue, name: str, why: str, *, dry_run: bool = False, progress: Progress = SILENT
) -> ChangeReport:
    """Take a patch out of the series; it goes to `retired` with the reason."""
    patch = queue.series.find(name)
    header = patch.header.replace("Patchq-Dropped", f"deleted on {queue.state.release}")
    text_ = patch.with_header(header.replace("Patchq-Evidence", why)).text
    lines = tuple(line for line in queue.series.lines if line.patch is not patch)
    wish = Wish("delete", patch.name, f"{patch.name}: {why}", lines, dropped={patch.file: text_})
    with opened(queue, leaving=patch, progress=progress) as bench:
        return rearranged(bench, wish, dry_run=dry_run)


def hold(
    queue: Queue, name: str, why: str, *, dry_run: bool = False, progress: Progress = SILENT
) -> ChangeReport:
    """Keep a patch in the series without applying it; held already, only the reason changes."""
    patch = queue.series.find(name)
    lines = _exchanged(queue.series.lines, patch, held_line(patch, why))
    wish = Wish("hold", patch.name, f"{patch.name}: {why}", lines)
    with opened(queue, leaving=patch, progress=progress) as bench:
        return rearranged(bench, wish, dry_run=dry_run)


def unhold(
    queue: Queue, name: str, *, dry_run: bool = False, progress: Progress = SILENT
) -> ChangeReport:
    """Apply a held patch again, in its place.

    Raises PatchqError for one that is not held, or was made on files that nobody here has.
    """
    patch = queue.series.find(name)
    if patch.name not in queue.series.held:
        raise PatchqError(f"{patch.name} is not held", "see `patchq series`")
    lines = _exchanged(queue.series.lines, patch, Line("patch", patch.file, patch))
    with opened(queue, more=[patch], progress=progress) as bench:
        below = _below(queue.series.lines, patch)
        changes = revived(bench.store, patch, bench.chain.at(below))
        wish = Wish("unhold", patch.name, patch.name, lines, {patch.name: changes})
        return rearranged(bench, wish, dry_run=dry_run)


def move(
    queue: Queue,
    name: str,
    *,
    before: str | None = None,
    after: str | None = None,
    dry_run: bool = False,
    progress: Progress = SILENT,
) -> ChangeReport:
    """Put a patch before or after another one; with neither, to the top (applied last)."""
    patch = queue.series.find(name)
    other = queue.series.find(before or after or "") if before or after else None
    lines = moved(queue.series.lines, patch, other, above=before is None)
    if other is None:
        where = "to the top"
    else:
        where = f"{'before' if before else 'after'} {other.name}"
    with opened(queue, progress=progress) as bench:
        return rearranged(
            bench, Wish("move", patch.name, f"{patch.name} {where}", lines), dry_run=dry_run
        )


def moved(
    lines: Sequence[Line], patch: Patch, other: Patch | None, *, above: bool
) -> tuple[Line, ...]:
    """The lines with that of `patch` beside the one of `other`, or last.

    Raises UsageError where both are one.
    """
    if other is patch:
        raise UsageError(f"{patch.name} cannot stand beside itself", "name another patch")
    (own,) = (line for line in lines if line.patch is patch)
    rest = [line for line in lines if line is not own]
    if other is None:
        return (*rest, own)
    (place,) = (at for at, line in enumerate(rest) if line.patch is other)
    rest.insert(place + above, own)
    return tuple(rest)


def revived(store: Store, patch: Patch, now: Mapping[bytes, File | None]) -> tuple[Change, ...]:
    """What a held patch does, seen from the files as they are `now` in its place.

    It was made on other contents, maybe: the lines that both have are the same lines.
    Raises PatchqError where the store does not have those contents.
    """
    changes = []
    for file in _files(patch):
        before = None if file.added else _before(store, patch, file, now[file.path])
        changes.append(replay.change_of(file, before, patch))
    return tuple(changes)


def _before(store: Store, patch: Patch, file: FileDiff, here: File | None) -> File:
    if file.old_oid is None:  # its mode only
        return File(file.old_mode, here.lines if here is not None else ())
    if here is not None and blob_id(here.data) == file.old_oid:
        return here if here.mode == file.old_mode else replace(here, mode=file.old_mode)
    try:
        data = store.objects.blob(file.old_oid)
    except PatchqError:
        data = None
    if data is None:
        if here is not None and not file.binary and text.fits(here.lines, file.hunks):
            return replace(here, mode=file.old_mode)
        raise PatchqError(
            f"{patch.file} was made on another {show(file.path)}, which is not in the store",
            f"bring it in anew with `patchq import`, then `patchq delete {patch.name}`",
        )
    if here is None:
        return replay.lined(file.old_mode, data)
    found = text.sections(store.diff_data(data, here.data))
    gaps = [gap for _, gaps, _ in found for gap in gaps]
    return replay.aligned(data, here, gaps, file.old_mode)


def _files(patch: Patch) -> tuple[FileDiff, ...]:
    if patch.files is None:
        raise PatchqError(
            f"{patch.file} is not in canonical form",
            f"bring it in anew with `patchq import`, then `patchq delete {patch.name}`",
        )
    return patch.files


def _below(lines: Sequence[Line], patch: Patch) -> list[Patch]:
    """The applied patches before the line of `patch`."""
    found: list[Patch] = []
    for line in lines:
        if line.patch is patch:
            break
        if line.kind == "patch" and line.patch is not None:
            found.append(line.patch)
    return found


def _exchanged(lines: Sequence[Line], patch: Patch, new: Line) -> tuple[Line, ...]:
    return tuple(new if line.patch is patch else line for line in lines)
