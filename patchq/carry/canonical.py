"""Bring whatever people made of a patch into canonical form, by git's own applier.

quilt's refresh writes `Index:` lines and timestamps, editors shift lines, mails carry renames:
git applies them (exact context, no fuzz) and says what the change was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from patchq.carry.answers import Decision
from patchq.carry.fold import Carry, Knowing, Release, fold
from patchq.carry.resolutions import Resolutions
from patchq.carry.tracks import Misfit
from patchq.errors import PatchqError
from patchq.gitstore.store import Store
from patchq.progress import SILENT, Progress
from patchq.queue import diff as diffs
from patchq.queue import patch as patches
from patchq.queue.diff import unquote
from patchq.queue.patch import Patch
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
                    "git knows the last good state of the series folder",
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
    out: dict[str, Patch] = {}
    for each, diff in zip(kept, texts, strict=True):
        out[each.patch.name] = each.patch.with_diff(diff or _marker(store, carry, each.patch))
    return out


def _marker(store: Store, carry: Carry, patch: Patch) -> bytes:
    """An empty patch stays the one it was, as long as the file that it names is there."""
    line = next((x for x in patch.diff.split(b"\n") if x.startswith(b"rename from ")), None)
    if line is not None:
        path = unquote(line[len(b"rename from ") :])
        if store.objects.lookup(carry.new.tree, path) is not None:
            return patch.diff
    first = min((path for path, _ in store.objects.walk(carry.new.tree)), default=b"README")
    return patches.empty_diff(first)


def side(release: Known) -> Release:
    return Release(release.name, release.commit, release.tree)


def applied(store: Store, base: Known, series: Sequence[Patch], progress: Progress) -> Carry:
    """The series on its own base: its trees and commits."""
    return fold_any(store, side(base), side(base), series, progress=progress)
