"""Bring whatever people made of a patch into canonical form, by git's own applier.

quilt's refresh writes `Index:` lines and timestamps, editors shift lines, mails carry renames:
git applies them (exact context, no fuzz) and says what the change was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from patchq.carry.tracks import Misfit
from patchq.errors import PatchqError
from patchq.gitstore.store import Store
from patchq.progress import SILENT, Progress
from patchq.queue import diff as diffs
from patchq.queue import patch as patches
from patchq.queue.diff import unquote
from patchq.queue.patch import Patch, quote

if TYPE_CHECKING:
    from patchq.carry.answers import Decision
    from patchq.carry.fold import Carry, Knowing, Release
    from patchq.carry.resolutions import Resolutions
    from patchq.upstream.releases import Release as Known


def canonical(store: Store, base: str, series: Sequence[Patch]) -> tuple[Patch, ...]:
    """`series` with every diff in canonical form on the tree `base`.

    Raises PatchqError that names the first patch that does not apply.
    """
    trees = [base]
    with store.index(base) as index:
        for patch in series:
            if patch.files == ():
                trees.append(trees[-1])
                continue
            done = index.apply_bytes(patch.diff)
            if done.code != 0:
                raise PatchqError(
                    f"{patch.file} does not apply to its own base: {done.why}",
                    "`patchq push` shows the conflict, `patchq undo` takes the last change back;"
                    " git knows the last good state of the series folder",
                )
            trees.append(index.write())
    diffs = store.diff_texts(list(pairwise(trees)))
    return tuple(
        patch.with_diff(diff) if diff else patch for patch, diff in zip(series, diffs, strict=True)
    )


def readable(store: Store, base: str, series: Sequence[Patch]) -> tuple[Patch, ...]:
    """`series` with diffs that can be taken apart: as they are, else in canonical form.

    Raises PatchqError for a diff that is not whole, is none, or does not apply.
    """
    ready = tuple(series)
    for patch in ready:
        diffs.require_whole(patch.diff, patch.file)
        if patch.files == () and b"\nrename from " not in patch.diff:
            raise PatchqError(
                f"{patch.file} holds no diff",
                "restore the file (git knows it), or take it out of the series",
            )
    if any(patch.files is None for patch in ready):
        return canonical(store, base, ready)
    return ready


def fold_any(
    store: Store,
    old: Release,
    new: Release,
    series: Sequence[Patch],
    *,
    decisions: Mapping[str, Decision] | None = None,
    held: Mapping[str, str] | None = None,
    resolutions: Resolutions | None = None,
    knowing: Knowing | None = None,
    progress: Progress = SILENT,
) -> Carry:
    """`fold`, for patches in any form that git can read."""
    from patchq.carry.fold import fold  # loads much that other uses of this module can spare

    ready = readable(store, old.tree, series)

    def go(patches: tuple[Patch, ...]) -> Carry:
        return fold(
            store,
            old,
            new,
            patches,
            decisions=decisions,
            held=held,
            resolutions=resolutions,
            knowing=knowing,
            progress=progress,
        )

    try:
        return go(ready)
    except Misfit:
        return go(canonical(store, old.tree, ready))


def exported(store: Store, carry: Carry) -> dict[str, Patch]:
    """The kept patches as they read on the new release, by name."""
    kept = [each for each in carry.patches if each.commit is not None]
    texts = store.diff_texts([(each.before, each.tree) for each in kept])
    series = [each.patch for each in kept]
    out: dict[str, Patch] = {}
    for each, diff in zip(kept, texts, strict=True):
        patch = each.patch.with_diff(diff)
        out[patch.name] = patch if diff else standing(store, each.tree, each.patch, series)
    return out


def standing(store: Store, tree: str, patch: Patch, series: Sequence[Patch]) -> Patch:
    """A patch that changes nothing, on `tree`: as it is where the file that it names is there."""
    path = named(patch)
    if path is not None and store.objects.lookup(tree, path) is not None:
        return patch
    return patch.with_diff(marker(store, tree, series))


def named(patch: Patch) -> bytes | None:
    """The file that a patch names only to change nothing."""
    if patch.files != ():
        return None
    start = b"rename from "
    lines = (line for line in patch.diff.split(b"\n") if line.startswith(start))
    line = next(lines, None)
    return unquote(line.removeprefix(start)) if line is not None else None


def marker(store: Store, tree: str, series: Sequence[Patch]) -> bytes:
    """The diff of a patch that changes nothing, on `tree`.

    It names a file: best one that no patch of `series` touches, else one that none adds or
    removes. Raises PatchqError where there are no files.
    """
    paths = []
    for path, _ in store.objects.walk(tree):
        if not any(_mentions(patch, path) for patch in series):
            return patches.empty_diff(path)
        paths.append(path)
    if not paths:
        raise PatchqError(
            "a patch that changes nothing names a file, and none is there",
            "take the patch out of the series",
        )
    files = [file for patch in series for file in patch.files or ()]
    comes = {file.path for file in files if file.added or file.deleted}
    return patches.empty_diff(next((path for path in paths if path not in comes), paths[0]))


def _mentions(patch: Patch, path: bytes) -> bool:
    return (path in patch.diff or quote(path) in patch.diff) and patch.files != ()


def side(release: Known) -> Release:
    from patchq.carry.fold import Release

    return Release(release.name, release.commit, release.tree)


def applied(store: Store, base: Known, series: Sequence[Patch], progress: Progress) -> Carry:
    """The series on its own base: its trees and commits."""
    return fold_any(store, side(base), side(base), series, progress=progress)
