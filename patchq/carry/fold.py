"""Carry and judge in one pass: the merge of patch i decides on what patch i + 1 is merged.

The whole series is tried: after a conflict the fold goes on with the patch's own text winning,
so that patches that build on it are not blamed for it, and every problem shows in one run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from patchq.carry.tracks import Tracks
from patchq.carry.units import find_unit
from patchq.gitstore.fastimport import Ident
from patchq.gitstore.store import Store
from patchq.judge.model import (
    CarryWord,
    FileSeen,
    Judgement,
    Observation,
    Signal,
)
from patchq.judge.verdict import judge
from patchq.progress import SILENT, Progress
from patchq.queue.patch import Patch


@dataclass(frozen=True)
class Release:
    """A commit of upstream and its tree; `name` as people call it."""

    name: str
    commit: str
    tree: str


@dataclass(frozen=True)
class Decision:
    """A person's answer for one patch, and the evidence that it was given on."""

    answer: str
    why: str
    evidence: str


@dataclass(frozen=True)
class Carried:
    """What became of one patch. `tree` is the new side after it.

    `moved` gives the new name of each of its files that upstream moved, `marked` the texts with
    conflict markers.
    """

    patch: Patch
    carry: CarryWord | None
    judgement: Judgement
    before: str
    tree: str
    commit: str | None = None
    moved: Mapping[bytes, bytes] = field(default_factory=dict)
    marked: Mapping[bytes, bytes] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Carry:
    """The whole series on the new release. `tree` holds the kept patches."""

    old: Release
    new: Release
    patches: tuple[Carried, ...]
    tree: str
    commit: str

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
    marked: Mapping[bytes, bytes]


def fold(
    store: Store,
    old: Release,
    new: Release,
    patches: tuple[Patch, ...],
    *,
    decisions: Mapping[str, Decision] | None = None,
    progress: Progress = SILENT,
) -> Carry:
    """Carry `patches` (canonical diffs on `old`) onto `new`.

    Raises PatchqError where a patch does not apply to its own base.
    """
    tracks = Tracks(store, old, new, patches)
    steps: list[_Step] = []
    parent: str | int = new.commit
    units: dict[str, Observation] = {}
    with store.fast_import(compression=0) as importer:
        for place, patch in enumerate(patches):
            progress.step("carrying", place, len(patches), "patches")
            labels = (new.name, f"{patch.file} before", patch.file)
            merges = tracks.merge(patch, labels)
            seen = units.get(patch.name) or Observation(tuple(m.seen for m in merges))
            verdict = judge(seen)
            if seen.unit == () and _in_question(seen, verdict):
                unit = find_unit(store, tracks, patches, place)
                if unit is not None:
                    for name in unit.unit:
                        units[name] = unit
                    verdict = judge(replace(unit, files=seen.files))
            verdict = _answered(verdict, (decisions or {}).get(patch.name))
            writes = tracks.commit(merges, keep=verdict.action in ("keep", "shrink", "ask"))
            mark = None
            if verdict.action in ("keep", "shrink", "ask"):
                mark = importer.commit(message(patch), ident(patch), parent, writes)
                parent = mark
            steps.append(
                _Step(
                    patch,
                    _word(seen.files, verdict),
                    verdict,
                    mark,
                    {f.path: f.new_path for f in seen.files if f.path != f.new_path},
                    {m.seen.path: m.marked for m in merges if m.marked},
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
                step.marked,
            )
        )
    return Carry(old, new, tuple(carried), tree, commit)


def _in_question(seen: Observation, verdict: Judgement) -> bool:
    """Whether the patch may have landed together with later ones."""
    return verdict.action == "ask" and any(
        file.merge == "conflict" and file.kind in ("content", "both added the file")
        for file in seen.files
    )


def _answered(verdict: Judgement, decision: Decision | None) -> Judgement:
    """A recorded answer counts where it was given on this very evidence."""
    if decision is None or verdict.action != "ask":
        return verdict
    if decision.evidence != evidence_id(verdict):
        return verdict
    if decision.answer == "drop":
        said = Signal("decision", "landed", f"decided to drop it: {decision.why}")
        return replace(verdict, action="drop", evidence=(*verdict.evidence, said), conflicts=())
    if verdict.conflicts:
        return verdict
    said = Signal("decision", "needed", f"decided to keep it: {decision.why}")
    return replace(verdict, action="keep", evidence=(*verdict.evidence, said))


def evidence_id(verdict: Judgement) -> str:
    """What an answer is bound to: the verdict and every signal behind it."""
    import hashlib

    text = "\n".join(
        [verdict.verdict, *(f"{s.signal} {s.says} {s.detail} {s.ref}" for s in verdict.evidence)]
    )
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _word(files: tuple[FileSeen, ...], verdict: Judgement) -> CarryWord:
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


def message(patch: Patch) -> bytes:
    """The commit message that stands for a patch: subject, body, our fields as trailers."""
    header = patch.header
    parts = [header.subject or patch.name]
    if header.body:
        parts.append(header.body)
    trailers = [
        f"{key}: {value}" for key, value in header.fields if key not in ("From", "Date", "Subject")
    ]
    if trailers:
        parts.append("\n".join(trailers))
    return ("\n\n".join(parts) + "\n").encode("utf-8", "surrogateescape")


def ident(patch: Patch) -> Ident:
    """Author and committer of that commit: the patch's own, so that ids are stable."""
    name, mail = patch.author
    moment = patch.date
    return Ident(
        name.encode("utf-8", "surrogateescape"),
        mail.encode("utf-8", "surrogateescape"),
        int(moment.timestamp()),
        f"{moment:%z}"[:5],
    )
