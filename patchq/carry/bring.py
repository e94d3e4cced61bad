"""Bring patches in: from files, quilt folders and branches, on top of the series."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from patchq.carry import branch, groups, journal, plan
from patchq.carry.canonical import applied
from patchq.carry.groups import Group, Wanted
from patchq.carry.incoming import Source, from_files, from_quilt
from patchq.carry.prove import apply_check
from patchq.carry.regroup import Picked, regrouped
from patchq.carry.report import Check, Proof
from patchq.carry.workspace import Queue, base_of, upstream_of
from patchq.errors import PatchqError, ProofFailed
from patchq.gitstore.store import Index, Store
from patchq.paths import show
from patchq.progress import SILENT, Progress
from patchq.queue import diff as diffs
from patchq.queue import patch as patches
from patchq.queue.header import Header
from patchq.queue.patch import Patch
from patchq.queue.series import Series
from patchq.upstream.releases import Release


@dataclass(frozen=True)
class How:
    """Which commits become one patch: by "topic", the whole "branch", or as listed.

    `name` is for a single patch.
    """

    by: str = ""
    wanted: tuple[Wanted, ...] = ()
    name: str = ""


@dataclass(frozen=True)
class ImportReport:
    """The new patches, what was not taken from their headers, and the tree with them.

    `commits` names for each patch what it was made of.
    """

    queue: str
    patches: tuple[Patch, ...]
    left_out: tuple[tuple[str, str], ...]
    tree: str
    proof: Proof
    entry: int | None
    recovered: str | None = None
    dry_run: bool = False
    commits: tuple[tuple[str, ...], ...] = ()


def bring(
    queue: Queue,
    *,
    files: Sequence[Path] = (),
    quilt: Path | None = None,
    git: str | None = None,
    commits: str = "",
    how: How | None = None,
    dry_run: bool = False,
    progress: Progress = SILENT,
) -> ImportReport:
    """Append patches to the series, in canonical form on its top. The caller holds the lock.

    Raises PatchqError where one does not apply (exact context, no fuzz), or where commits that are
    to be one patch cannot be put together; nothing is changed then.
    """
    how = how or How()
    with upstream_of(queue, progress=progress) as upstream, ExitStack() as stack:
        base = base_of(queue, upstream)
        below = applied(upstream.store, base, queue.series.applied, progress)
        store = upstream.store
        if git is not None:
            store = stack.enter_context(Store(store.path, borrow=branch.git_dir_of(git)))
            picked = _commits(store, branch.find(git, commits, base), below.tree, how, progress)
        else:
            sources = from_quilt(quilt) if quilt is not None else from_files(files)
            trees = _pick(store, below.tree, sources, progress)
            single = tuple(Group((place,)) for place in range(len(sources)))
            picked = Picked(tuple(sources), trees, single, tuple(range(len(sources))))
        picked, texts = regrouped(store, below, picked)
        made = _made(queue, store, base, picked, texts, how.name)
        after = queue.series.append(made)
        # Not in the borrowing store: what it borrows is gone tomorrow.
        with upstream.store.index(base.tree) as index:
            tree = _tree(index, after)
        if tree != picked.trees[-1]:
            raise ProofFailed("the patches give another tree than their sources", "report it")
        check = apply_check(upstream.store, base.tree, after.applied, tree)
        if not check.ok:
            raise ProofFailed(f"the imported series does not hold: {check.detail}", "report it")
        state = queue.state.on(base, after.digest, tree)
        changes = plan.changes(queue.config.series, queue.series, after, {})
        changes |= queue.state_file(state)
        entry = None
        if not dry_run:
            count = f"{len(made)} patch" + ("es" if len(made) != 1 else "")
            entry = journal.record(queue.project, "import", count, changes)
    members = [[picked.sources[place] for place in group.members] for group in picked.groups]
    left_out = tuple(
        (patch.name, field)
        for patch, of in zip(made, members, strict=True)
        for source in of
        for field in source.brought.left_out
    )
    return ImportReport(
        queue.config.name,
        tuple(made),
        left_out,
        tree,
        Proof((Check(check.name, check.ok, check.detail),)),
        entry.id if entry else None,
        dry_run=dry_run,
        commits=tuple(tuple(source.label for source in of) for of in members),
    )


def _commits(store: Store, of: branch.Range, top: str, how: How, progress: Progress) -> Picked:
    """A branch on top of the series: it gives what the whole branch gives there."""
    sources = branch.sources(store, of, progress)
    if how.by == "branch":
        sources = [branch.whole(store, of, sources)]
    trees = _pick(store, top, sources, progress)
    goal = branch.expected(store, of, top)
    if goal is not None and goal != trees[-1]:
        if not of.contains:
            raise PatchqError(
                f"the commits of {show(of.name)} one by one give another tree than all at once",
                "name the range as A..B, or take it as one patch with --group-by branch",
            )
        sources.append(branch.settled(store, of, trees[-1], goal))
        trees = (*trees, goal)
    ids = [source.commit for source in sources]
    subjects = [source.brought.header.subject for source in sources]
    found = groups.grouped(ids, subjects, by_topic=how.by == "topic", wanted=how.wanted)
    return Picked(tuple(sources), trees, found, tuple(groups.targets(ids, subjects)))


def _pick(store: Store, top: str, sources: Sequence[Source], progress: Progress) -> tuple[str, ...]:
    trees = [top]
    with store.index(top) as index:
        for place, source in enumerate(sources):
            progress.step("importing", place, len(sources), "patches")
            trees.append(_apply(index, source, trees[-1]))
    return tuple(trees)


def _made(
    queue: Queue,
    store: Store,
    base: Release,
    picked: Picked,
    texts: Sequence[bytes],
    name: str,
) -> list[Patch]:
    """One patch for each group, numbered and named."""
    if name and len(picked.groups) != 1:
        raise PatchqError(
            f"--name {show(name)} is for one patch, and {len(picked.groups)} come in",
            "group them, or `patchq rename` them later",
        )
    series = queue.series
    made: list[Patch] = []
    taken = set(series.names)
    number = series.next_number
    for group, diff in zip(picked.groups, texts, strict=True):
        brought = [source.brought for source in picked.sources]
        header = groups.header(group, brought, picked.mends)
        own = brought[group.members[0]].name if len(group.members) == 1 else ""
        chosen = name or group.name
        found = _name(chosen, own or group.topic, header, taken)
        taken.add(found)
        text = diff or patches.empty_diff(_any_file(store, base.tree))
        patch = patches.make(number, found, header, text)
        # Reading it refuses what a series cannot hold: submodules, paths that leave the tree.
        assert patch.files is not None, patch.file
        made.append(patch)
        number += 1
    return made


def _name(chosen: str, own: str, header: Header, taken: set[str]) -> str:
    """The name that was asked for, its own, or one made of the subject."""
    wanted = chosen or own
    free = bool(wanted) and wanted not in taken and patches.FILE.match(f"0000-{wanted}.patch")
    if chosen and not free:
        raise PatchqError(
            f"{show(chosen)!r} is in use, or cannot be a patch's name",
            f"choose another one, say {patches.slug(chosen, taken)}",
        )
    return wanted if free else patches.slug(wanted or header.subject, taken)


def _tree(index: Index, series: Series) -> str:
    for patch in series.applied:
        done = index.apply_bytes(patch.text)
        if done.code != 0:
            raise PatchqError(
                f"{patch.file} does not apply once it is written: {done.why}",
                "report this as a bug",
            )
    return index.write()


def _apply(index: Index, source: Source, before: str) -> str:
    """The tree after one patch; a patch that changes nothing gives the tree before."""
    diff = source.brought.diff
    if not diff.strip():
        return before
    diffs.require_whole(diff, source.label)
    why = ""
    # Where git itself wrote `a/` and `b/`, another level would put the file below `b/`.
    for level in (1,) if b"diff --git a/" in diff else source.levels:
        done = index.apply_bytes(diff, options=[f"-p{level}"])
        if done.code == 0:
            return index.write()
        why = why or done.why
    if source.three_way:
        done = index.apply_bytes(diff, options=["-p1", "--3way"])
        if done.code == 0:
            return index.write()
    again = ", or take the branch as one patch with --group-by branch" if source.commit else ""
    raise PatchqError(
        f"{source.label} ({show(source.brought.header.subject)}) does not apply on top of the"
        f" series: {show(why)}",
        f"nothing was imported; import it on the base it was made for, then `patchq sync`{again}",
    )


def _any_file(store: Store, tree: str) -> bytes:
    return min((path for path, _ in store.objects.walk(tree)), default=b"README")
