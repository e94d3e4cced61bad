"""Another order of the series on the same base: worked out, written as trees, proved, recorded.

Everything that changes the series without a working tree comes through here. What may stand where
is decided in `replay`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from patchq.carry import journal, plan
from patchq.carry.canonical import applied, readable, standing
from patchq.carry.checks import runner
from patchq.carry.fold import Carry
from patchq.carry.message import ident, message
from patchq.carry.prove import apply_check, prove
from patchq.carry.replay import Chain, Change, Clash, File, Placed, chain, lined, replay
from patchq.carry.report import DECISION, DONE, UNPROVED, Proof
from patchq.carry.step import Patched
from patchq.carry.workspace import Queue, base_of, upstream_of
from patchq.errors import PatchqError
from patchq.gitstore.fastimport import Write
from patchq.gitstore.objects import GITLINK, TREE
from patchq.gitstore.store import Store
from patchq.progress import SILENT, Progress
from patchq.queue.patch import Patch
from patchq.queue.series import Line, Series
from patchq.upstream.releases import Release


@dataclass(frozen=True)
class Bench:
    """A queue opened to be rearranged. `applied` are its patches with canonical diffs."""

    queue: Queue
    store: Store
    base: Release
    applied: tuple[Patch, ...]
    chain: Chain
    tree: str
    progress: Progress = SILENT


@dataclass(frozen=True)
class Wish:
    """What a command wants of the series.

    `lines` are the series file's new ones. By patch: `changes` of those that it did not apply so
    far, `fresh` those whose diff is to be made. `dropped` are texts of retired patches by file,
    `files` what else is to be written, by path.
    """

    command: str
    name: str
    summary: str
    lines: tuple[Line, ...]
    changes: Mapping[str, tuple[Change, ...]] = field(default_factory=dict)
    fresh: frozenset[str] = frozenset()
    dropped: Mapping[str, bytes] = field(default_factory=dict)
    files: Mapping[str, bytes | None] = field(default_factory=dict)


@dataclass(frozen=True)
class ChangeReport:
    """What became of the series: clashes (then nothing was changed), or the new one, proved.

    `rewritten` are the patches whose diff reads anew, `written` the series' files that change.
    """

    queue: str
    command: str
    name: str
    summary: str
    tree: str
    clashes: tuple[Clash, ...]
    rewritten: tuple[str, ...]
    written: tuple[str, ...]
    proof: Proof
    entry: int | None
    dry_run: bool

    @property
    def exit_code(self) -> int:
        if self.clashes:
            return DECISION
        return DONE if self.proof.ok else UNPROVED


@contextmanager
def opened(
    queue: Queue,
    *,
    more: Sequence[Patch] = (),
    leaving: Patch | None = None,
    progress: Progress = SILENT,
) -> Iterator[Bench]:
    """The queue's series on its base, line by line; `more` are patches whose files count, too.

    `leaving` is a patch that is to go: it may be the one that does not apply. Raises PatchqError
    where the series does not apply to its own base.
    """
    with upstream_of(queue, progress=progress) as upstream:
        base, store = base_of(queue, upstream), upstream.store
        if queue.is_proved:
            series = readable(store, base.tree, queue.series.applied)
            tree = queue.state.runner_tree
        else:
            carry = _carried(store, base, queue.series.applied, leaving, progress)
            series = tuple(each.patch for each in carry.patches)
            tree = carry.tree
        known = chain(files_of(store, base.tree, (*series, *more)), series)
        yield Bench(queue, store, base, series, known, tree, progress)


def _carried(
    store: Store,
    base: Release,
    series: Sequence[Patch],
    leaving: Patch | None,
    progress: Progress,
) -> Carry:
    """The series as git applies it, without `leaving` where that is in the way."""
    try:
        carry = applied(store, base, series, progress)
        check = apply_check(store, base.tree, series, carry.tree)
        if not check.ok:
            raise PatchqError(
                f"the series does not apply to its own base: {check.detail}",
                "`patchq push` shows where it conflicts, `patchq hold` puts a patch aside",
            )
        return carry
    except PatchqError:
        if leaving not in series:
            raise
    return _carried(store, base, [x for x in series if x is not leaving], None, progress)


def files_of(store: Store, tree: str, series: Sequence[Patch]) -> dict[bytes, File | None]:
    """Every file of `tree` that the patches touch, line by line."""
    paths = dict.fromkeys(file.path for patch in series for file in patch.files or ())
    entries = {path: store.objects.lookup(tree, path) for path in paths}
    found = {path: e for path, e in entries.items() if e and e.mode not in (TREE, GITLINK)}
    blobs = store.objects.blobs(entry.oid for entry in found.values())
    files: dict[bytes, File | None] = dict.fromkeys(paths)
    files |= {path: lined(entry.mode, blobs[entry.oid]) for path, entry in found.items()}
    return files


def trees_of(store: Store, commit: str, tree: str, placed: Sequence[Placed]) -> list[str]:
    """The tree before the first patch, and after each; `commit` is the one of `tree`."""
    if not placed:
        return [tree]
    parent: str | int = commit
    with store.fast_import(compression=0) as importer:
        for each in placed:
            writes = [
                Write(path) if file is None else Write(path, file.mode, file.data)
                for path, file in each.writes.items()
            ]
            parent = importer.commit(message(each.patch), ident(each.patch), parent, writes)
        ids = importer.finish()
    return [tree, *store.objects.trees_of(ids)]


def rearranged(bench: Bench, wish: Wish, *, dry_run: bool = False) -> ChangeReport:
    """The series as `wish` wants it: proved and, unless `dry_run`, recorded.

    Where patches clash or the proof fails nothing is changed.
    """
    queue = bench.queue
    report = ChangeReport(
        queue.config.name, wish.command, wish.name, wish.summary, bench.tree,
        (), (), (), Proof(), None, dry_run,
    )  # fmt: skip
    wanted = [line.patch for line in wish.lines if line.kind == "patch" and line.patch]
    order = [(patch, _changes(bench, wish, patch)) for patch in wanted]
    done = replay(bench.chain, order)
    if done.clashes:
        return replace(report, clashes=done.clashes)
    placed = [
        replace(each, rewritten=True) if each.patch.name in wish.fresh else each
        for each in done.placed
    ]
    texts, tree = _written(bench, placed)
    lines = tuple(
        replace(line, patch=texts[line.patch.name]) if line.patch and line.kind == "patch" else line
        for line in wish.lines
    )
    retired = tuple(sorted({*queue.series.retired, *wish.dropped}))
    after = Series(lines, retired)
    proof = _proof(bench, after.applied, tree)
    changes = plan.changes(queue.config.series, queue.series, after, wish.dropped)
    written = tuple(sorted(changes))
    changes |= queue.state_file(queue.state.proved(after.digest, tree))
    changes |= wish.files
    report = replace(
        report,
        tree=tree,
        proof=proof,
        rewritten=tuple(
            each.patch.file
            for each in placed
            if each.rewritten or texts[each.patch.name] is not each.patch
        ),
        written=written,
    )
    if dry_run or not proof.ok:
        return report
    entry = journal.record(queue.project, wish.command, wish.summary, changes)
    return replace(report, entry=entry.id if entry else None)


def _changes(bench: Bench, wish: Wish, patch: Patch) -> tuple[Change, ...]:
    return (
        wish.changes[patch.name] if patch.name in wish.changes else bench.chain.changes[patch.name]
    )


def _written(bench: Bench, placed: Sequence[Placed]) -> tuple[dict[str, Patch], str]:
    """The patches as they read in their new places, and the tree that they give."""
    store, base = bench.store, bench.base
    trees = trees_of(store, base.commit, base.tree, placed)
    anew = [place for place, each in enumerate(placed) if each.rewritten]
    diffs = store.diff_texts([(trees[place], trees[place + 1]) for place in anew])
    texts = {each.patch.name: each.patch for each in placed}
    for place, diff in zip(anew, diffs, strict=True):
        patch = placed[place].patch
        texts[patch.name] = patch.with_diff(diff)
    series = list(texts.values())
    for place, each in enumerate(placed):
        if each.patch.files == () and not each.rewritten:
            texts[each.patch.name] = standing(store, trees[place], each.patch, series)
    return texts, trees[-1]


def _proof(bench: Bench, series: Sequence[Patch], tree: str) -> Proof:
    """All of a sync's proof; git's word alone where the tree is the one that it was."""
    if tree == bench.tree:
        return Proof((apply_check(bench.store, bench.base.tree, series, tree),))
    queue = bench.queue
    return prove(
        bench.store,
        bench.base.tree,
        series,
        tree,
        patched_before=Patched(bench.store, bench.base, queue),
        run_checks=runner(queue.project, queue.config.series, bench.progress),
        progress=bench.progress,
    )
