"""Carry and judge in one pass: the merge of patch i decides on what patch i + 1 is merged.

The whole series is tried: after a conflict the fold goes on with the patch's own text winning,
so that patches that build on it are not blamed for it, and every problem shows in one run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from patchq.carry.answers import Decision, answered, hold, resolved
from patchq.carry.clash import Clash, Key, clashes, key_of
from patchq.carry.message import ident, message
from patchq.carry.moves import yielding
from patchq.carry.resolutions import Resolution, Resolutions, bond, resolve
from patchq.carry.tracks import Tracks
from patchq.carry.units import find_unit
from patchq.gitstore.fastimport import Write
from patchq.gitstore.store import Store
from patchq.judge.model import (
    CarryWord,
    FileSeen,
    Judgement,
    Known,
    Observation,
)
from patchq.judge.verdict import judge
from patchq.progress import SILENT, Progress
from patchq.queue.patch import Patch

Knowing = Callable[[Sequence[Patch]], Mapping[str, Known]]
"""Says of canonical patches what is known besides the trees, by name."""


@dataclass(frozen=True)
class Release:
    """A commit of upstream and its tree; `name` as people call it."""

    name: str
    commit: str
    tree: str


@dataclass(frozen=True)
class Stop:
    """A patch that asks: its conflicts, and what it writes where there are none.

    `keys` are those of all its paths, `bound` is what edits beside its conflicts are bound to;
    `parent` is the commit (or the fold's mark) before it.
    """

    clashes: tuple[Clash, ...]
    writes: tuple[Write, ...] = field(repr=False)
    keys: tuple[Key, ...]
    bound: str
    parent: str | int


@dataclass(frozen=True)
class Carried:
    """What became of one patch. `tree` is the new side after it.

    `moved` gives the new name of each of its files that upstream moved, `used` the recorded
    resolutions that it was carried with, `stop` what is to be resolved.
    """

    patch: Patch
    carry: CarryWord | None
    judgement: Judgement
    before: str
    tree: str
    commit: str | None = None
    moved: Mapping[bytes, bytes] = field(default_factory=dict)
    used: tuple[Resolution, ...] = ()
    stop: Stop | None = None
    upstream: str = ""


@dataclass(frozen=True)
class Carry:
    """The whole series on the new release. `tree` holds the kept patches.

    `history`: why upstream's history was not read, "" where it was, None where there is none.
    """

    old: Release
    new: Release
    patches: tuple[Carried, ...]
    tree: str
    commit: str
    history: str | None = None
    unseen: tuple[str, ...] = ()

    @property
    def asks(self) -> tuple[Carried, ...]:
        return tuple(each for each in self.patches if each.judgement.action == "ask")


@dataclass(frozen=True)
class _Step:
    patch: Patch
    word: CarryWord
    judgement: Judgement
    mark: int | None
    moved: Mapping[bytes, bytes]
    used: tuple[Resolution, ...]
    stop: Stop | None


def fold(
    store: Store,
    old: Release,
    new: Release,
    patches: tuple[Patch, ...],
    *,
    decisions: Mapping[str, Decision] | None = None,
    held: Mapping[str, str] | None = None,
    resolutions: Resolutions | None = None,
    knowing: Knowing | None = None,
    progress: Progress = SILENT,
) -> Carry:
    """Carry `patches` (canonical diffs on `old`) onto `new`.

    `knowing` says what is known of each patch besides the trees.
    Patches in `held` (and why) stand on `old` only; `resolutions` answer conflicts that they know.
    Raises PatchqError where a patch does not apply to its own base.
    """
    known = knowing(patches) if knowing else {}
    tracks = Tracks(store, old, new, patches)
    steps: list[_Step] = []
    parent: str | int = new.commit
    units: dict[str, Observation] = {}
    written: set[bytes] = set()
    with store.fast_import(compression=0) as importer:
        for place, patch in enumerate(patches):
            progress.step("carrying", place, len(patches), "patches")
            labels = (new.name, f"{patch.file} before", patch.file)
            merges = tracks.merge(patch, labels)
            its = known.get(patch.name, Known())
            files = tuple(m.seen for m in merges)
            # Upstream may have it, and a kept patch of our own before it takes it back.
            past = None if _undone_by_ours(files, written) else its.past
            seen = units.get(patch.name) or Observation(files, extra=its.signals, past=past)
            verdict = judge(seen)
            if seen.unit == () and _in_question(seen, verdict):
                unit = find_unit(store, tracks, patches, place)
                if unit is not None:
                    for name in unit.unit:
                        units[name] = unit
                    verdict = judge(replace(unit, files=seen.files))
            verdict = answered(verdict, (decisions or {}).get(patch.name))
            used: tuple[Resolution, ...] = ()
            if patch.name in (held or {}):
                verdict = hold(verdict, (held or {})[patch.name])
            merges = yielding(merges, verdict.yields)
            asked = tuple(map(key_of, merges)) if verdict.action == "ask" else ()
            bound = bond(merges) if asked else ""
            if asked and resolutions:
                merges, used = resolve(resolutions, patch.name, merges, tracks.at)
                verdict = resolved(verdict, merges, used)
            found = clashes(merges)
            writes = tracks.commit(merges, keep=verdict.action in ("keep", "shrink", "ask"))
            mark, stop = None, None
            if verdict.action == "ask":
                torn = {clash.new_path for clash in found}
                clean = tuple(write for write in writes if write.path not in torn)
                stop = Stop(found, clean, asked, bound, parent)
            if verdict.action in ("keep", "shrink", "ask"):
                mark = importer.commit(message(patch), ident(patch), parent, writes)
                parent = mark
            if verdict.action in ("keep", "shrink"):
                # What still asks may go: its answer folds the series again.
                written |= {file.new_path for file in files}
            steps.append(
                _Step(
                    patch,
                    _word(tuple(m.seen for m in merges), verdict),
                    verdict,
                    mark,
                    {f.path: f.new_path for f in seen.files if f.path != f.new_path},
                    used,
                    stop,
                )
            )
        progress.step("carrying", len(patches), len(patches), "patches")
        ids = importer.finish()
    return _finish(store, old, new, steps, ids)


def _finish(store: Store, old: Release, new: Release, steps: list[_Step], ids: list[str]) -> Carry:
    carried: list[Carried] = []
    tree, commit = new.tree, new.commit
    trees = store.objects.trees_of(ids)
    for step in steps:
        before = tree
        if step.mark is not None:
            commit, tree = ids[step.mark - 1], trees[step.mark - 1]
        carried.append(
            Carried(
                step.patch,
                step.word,
                step.judgement,
                before,
                tree,
                commit if step.mark is not None else None,
                step.moved,
                step.used,
                _placed(step.stop, ids),
            )
        )
    return Carry(old, new, tuple(carried), tree, commit)


def _undone_by_ours(files: Sequence[FileSeen], written: Collection[bytes]) -> bool:
    """Whether all of the patch is still to do on files that kept patches of the series changed."""
    active = [file for file in files if file.merge != "noop"]
    return any(file.new_path in written for file in active) and all(
        file.merge == "clean" and not file.same and not file.elsewhere for file in active
    )


def _in_question(seen: Observation, verdict: Judgement) -> bool:
    """Whether the patch may have landed together with later ones."""
    return verdict.action == "ask" and any(
        file.merge == "conflict" and file.kind in ("content", "both added the file")
        for file in seen.files
    )


def _placed(stop: Stop | None, ids: list[str]) -> Stop | None:
    """With the id of the commit before it in place of the fold's mark."""
    if stop is None or isinstance(stop.parent, str):
        return stop
    return replace(stop, parent=ids[stop.parent - 1])


def _word(files: tuple[FileSeen, ...], verdict: Judgement) -> CarryWord:
    if verdict.action == "hold":
        return "held"
    if verdict.action == "drop":
        return "empty"
    if any(file.merge == "conflict" for file in files):
        return "conflict"
    if verdict.action == "shrink":
        return "residual"
    active = [file for file in files if file.merge != "noop"]
    if active and all(file.merge == "empty" for file in active):
        return "empty"
    return "moved" if any(file.new_path != file.path for file in files) else "clean"
