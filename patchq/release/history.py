"""The releases that a repository has: list, one of them, what one has otherwise than another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from patchq.build import lock as locks
from patchq.build import lockfacts
from patchq.build.lock import Difference
from patchq.carry import rangediff
from patchq.errors import PatchqError
from patchq.gitstore import tags
from patchq.queue import patch as patches
from patchq.queue.patch import FILE, Patch
from patchq.release import archive, bundle, manifest, parts, record, withdraw
from patchq.release.manifest import Base, Figure, Manifest

_LARGEST = 1 << 28
_OWN = ("patch/", "tree", "base/", "queue")
"""Facts of a lock that a difference tells of elsewhere."""


@dataclass(frozen=True)
class Listed:
    """A release of the repository. `tag`: the commit that it is of; `here`: its bundle is in
    build/releases; `withdrawn`: why nobody should install it."""

    manifest: Manifest
    tag: str | None
    here: bool
    withdrawn: str | None = None


def listed(root: Path) -> tuple[Listed, ...]:
    """All of them, the newest first. Raises PatchqError for a damaged one."""
    found = [manifest.read_at(root, number) for number in reversed(manifest.numbers(root))]
    return tuple(_listed(root, each) for each in found if each is not None)


def _listed(root: Path, found: Manifest) -> Listed:
    mark = withdraw.recorded(root).get(found.number)
    return Listed(
        found,
        tags.tagged(root, record.tag_of(found.number)),
        bundle.folder(root, found.number).is_dir(),
        withdraw.read(mark).why if mark else None,
    )


def one(root: Path, number: int) -> Listed:
    """Release `number`. Raises PatchqError where there is none."""
    found = manifest.read_at(root, number)
    if found is None:
        there = manifest.numbers(root)
        raise PatchqError(
            f"there is no release {number} here",
            f"there are {', '.join(map(str, there))}" if there else "none was cut yet",
        )
    return _listed(root, found)


@dataclass(frozen=True)
class PatchDiff:
    """A patch that two releases do not have alike. `kind`: new, dropped or changed; `why` of a
    dropped one; `range_diff` as `git range-diff` shows it, None where a series is not here."""

    kind: str
    name: str
    title: str
    why: str = ""
    prs: tuple[str, ...] = ()
    range_diff: str | None = None


@dataclass(frozen=True)
class ReleaseDiff:
    """What `b` has otherwise than `a`. `bench`: the cells that either has; None: it has it not.

    `notes` say what could not be compared.
    """

    a: int
    b: int
    base: tuple[Base, Base]
    carried: int
    patches: tuple[PatchDiff, ...]
    dependencies: tuple[Difference, ...]
    bench: tuple[tuple[Figure | None, Figure | None], ...]
    notes: tuple[str, ...] = ()


def diff(root: Path, a: int, b: int) -> ReleaseDiff:
    """Compare two releases. Raises PatchqError where one is not there."""
    old, new = one(root, a).manifest, one(root, b).manifest
    texts = [_series(root, each) for each in (old, new)]
    notes = tuple(
        f"the series of release {each.number} is not here: its tag and its bundle are missing"
        for each, found in zip((old, new), texts, strict=True)
        if found is None
    )
    own = {each.name: each for each in old.patches}
    names = {each.name for each in new.patches}
    why = {each.name: each.why for each in new.dropped}
    found: list[PatchDiff] = []
    for each in new.patches:
        was = own.get(each.name)
        if was is None:
            found.append(PatchDiff("new", each.name, each.title, prs=each.prs))
        elif (was.sha256, was.prs) != (each.sha256, each.prs):
            ranged = _range(texts[0], texts[1], each.name)
            found.append(PatchDiff("changed", each.name, each.title, "", each.prs, ranged))
    found += [
        PatchDiff("dropped", each.name, each.title, why.get(each.name, ""), each.prs)
        for each in old.patches
        if each.name not in names
    ]
    changed = {each.name for each in found}
    return ReleaseDiff(
        a,
        b,
        (old.base, new.base),
        sum(each.name not in changed for each in new.patches),
        tuple(found),
        dependencies(old, new),
        beside(old.bench, new.bench),
        notes,
    )


def dependencies(old: Manifest | None, new: Manifest) -> tuple[Difference, ...]:
    """What decides how the runner behaves, beside its patches and its base."""
    was = locks.make(old.facts) if old else None
    return tuple(
        each
        for each in locks.differences(was, locks.make(new.facts))
        if not each.key.startswith(_OWN)
    )


def beside(
    old: tuple[Figure, ...], new: tuple[Figure, ...]
) -> tuple[tuple[Figure | None, Figure | None], ...]:
    """The figures of two releases by cell."""
    was, now = ({_cell(each): each for each in figures} for figures in (old, new))
    return tuple((was.get(key), now.get(key)) for key in sorted(was.keys() | now.keys()))


def content_ids(root: Path, commit: str, found: Manifest) -> dict[str, str]:
    """What each applied patch of a commit changes, as a release has it, by name."""
    texts = tags.folder_at(root, commit, found.folder)
    applied = texts.get("series", b"").decode("utf-8", "replace").split("\n")
    known = {file: text for file, text in texts.items() if file in {*map(_first, applied)}}
    return {patch.name: lockfacts.content_id(patch) for patch in _parsed(known).values()}


def _first(line: str) -> str:
    return next(iter(line.split()), "")


def _cell(figure: Figure) -> tuple[str, int, int, bool]:
    return figure.kind, figure.context, figure.concurrency, figure.warm


def _range(
    old: Mapping[str, Patch] | None, new: Mapping[str, Patch] | None, name: str
) -> str | None:
    if old is None or new is None or name not in old or name not in new:
        return None
    return rangediff.between(old[name].diff, new[name].diff)


def _series(root: Path, found: Manifest) -> dict[str, Patch] | None:
    """The patches of a release by name: as tagged, or out of its bundle's archive."""
    commit = tags.tagged(root, record.tag_of(found.number))
    texts = tags.folder_at(root, commit, found.folder) if commit else {}
    if not texts:
        try:
            place = bundle.folder(root, found.number)
            with parts.whole(place, found.asset(bundle.SERIES)) as path:
                files = archive.read(path, _LARGEST)
        except (ValueError, OSError):
            return None
        texts = {name.removeprefix(f"{found.folder}/"): data for name, data in files.items()}
    names = {each.name for each in found.patches}
    return {name: patch for name, patch in _parsed(texts).items() if name in names}


def _parsed(texts: Mapping[str, bytes]) -> dict[str, Patch]:
    found = (patches.parse(name, data) for name, data in texts.items() if FILE.match(name))
    return {patch.name: patch for patch in found}
