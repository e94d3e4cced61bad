"""Bring patches in: from files, quilt folders and commit ranges, on top of the series."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from patchq.carry import journal, plan
from patchq.carry.canonical import applied
from patchq.carry.prove import apply_check
from patchq.carry.report import Check, Proof
from patchq.carry.workspace import Queue, base_of, upstream_of
from patchq.errors import PatchqError, ProofFailed
from patchq.gitstore.git import run
from patchq.gitstore.store import Index, Store
from patchq.paths import show
from patchq.progress import SILENT, Progress
from patchq.queue import diff as diffs
from patchq.queue import mail
from patchq.queue import patch as patches
from patchq.queue.mail import Brought
from patchq.queue.patch import Patch
from patchq.queue.series import Series
from patchq.upstream.history import local_git_dir


@dataclass(frozen=True)
class Source:
    """One patch to bring in, how to call it in messages, and the -p levels to try.

    `three_way`: the contents it was made on are at hand (a commit's are), so it may be merged.
    """

    brought: Brought
    label: str
    levels: tuple[int, ...] = (1, 0)
    three_way: bool = False


@dataclass(frozen=True)
class ImportReport:
    """The new patches, what was not taken from their headers, and the tree with them."""

    queue: str
    patches: tuple[Patch, ...]
    left_out: tuple[tuple[str, str], ...]
    tree: str
    proof: Proof
    entry: int | None
    recovered: str | None = None
    dry_run: bool = False


def from_files(paths: Sequence[Path]) -> list[Source]:
    """Patch files and mboxes.

    Raises PatchqError for a file that cannot be read or holds no diff.
    """
    sources: list[Source] = []
    for path in paths:
        found = mail.read(_read(path), path.name)
        sources += [Source(_named(each, path.stem, len(found)), path.name) for each in found]
    return sources


def _named(brought: Brought, stem: str, count: int) -> Brought:
    """A single nameless patch is called like its file."""
    if brought.name or count > 1:
        return brought
    plain = re.sub(r"^\d+[-_.]", "", stem)
    return Brought(brought.header, brought.diff, patches.slug(plain), brought.left_out)


def from_quilt(folder: Path) -> list[Source]:
    """A quilt directory: the patches that its `series` file names, with their -p options."""
    listed = _read(folder / "series").decode("utf-8", "surrogateescape")
    sources: list[Source] = []
    for number, raw in enumerate(listed.splitlines(), 1):
        line = raw.partition("#")[0].split()
        if not line:
            continue
        path = folder / line[0]
        if not path.resolve().is_relative_to(folder.resolve()):
            raise PatchqError(
                f"{folder}/series:{number} names {show(line[0])}, outside the folder",
                "correct the series file",
            )
        found = re.fullmatch(r"-p(?:(\d+)|ab)", line[1]) if len(line) > 1 else None
        levels = (int(found[1]),) if found and found[1] else (1,)
        (brought,) = mail.read(_read(path), path.name)[:1]
        sources.append(Source(_named(brought, path.stem, 1), path.name, levels))
    return sources


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise PatchqError(
            f"{path} cannot be read: {error.strerror}", "name an existing file or folder"
        ) from error


def borrowing(store: Store, repository: str) -> Store:
    """`store` with the objects of the repository at a path readable. The caller closes it."""
    git_dir = local_git_dir(repository)
    if git_dir is None:
        raise PatchqError(
            f"{repository} is not a path", "clone the repository and give the clone's path"
        )
    return Store(store.path, borrow=git_dir)


def from_git(repository: str, commits: str, store: Store) -> list[Source]:
    """One patch per commit of `commits` ("A..B", first parents, oldest first).

    A merge becomes one patch: what it brought to its first parent. `store` reads the
    repository's objects. Raises PatchqError where the range names nothing.
    """
    if ".." not in commits or commits.startswith("-"):
        raise PatchqError(f"{commits!r} is not a range of commits", "write it as A..B")
    done = run(
        ["rev-list", "--first-parent", "--reverse", "--parents", "--end-of-options", commits],
        git_dir=local_git_dir(repository),
        ok=(0, 128),
    )
    if done.code != 0:
        raise PatchqError(
            f"{repository} has no range {commits!r}: {done.why}", "name two commits as A..B"
        )
    lines = [line.split() for line in done.out.decode().splitlines()]
    if not lines:
        raise PatchqError(f"{commits!r} holds no commits", "is it the wrong way round?")
    pairs = []
    for commit, *parents in lines:
        if not parents:
            raise PatchqError(f"{commit[:12]} has no parent", "start the range behind it")
        trees = [store.objects.tree_of(name) for name in (parents[0], commit)]
        pairs.append((trees[0], trees[1]))
    diffs = store.diff_texts(pairs)
    objects = [data for _, _, data in store.objects.read_many(line[0] for line in lines)]
    return [
        Source(mail.from_commit(data, diff), line[0][:12], (1,), three_way=True)
        for line, data, diff in zip(lines, objects, diffs, strict=True)
    ]


def bring(
    queue: Queue,
    *,
    files: Sequence[Path] = (),
    quilt: Path | None = None,
    git: str | None = None,
    commits: str = "",
    dry_run: bool = False,
    progress: Progress = SILENT,
) -> ImportReport:
    """Append patches to the series, in canonical form on its top. The caller holds the lock.

    Raises PatchqError where one does not apply (exact context, no fuzz); nothing is changed then.
    """
    with upstream_of(queue, progress=progress) as upstream, ExitStack() as stack:
        base = base_of(queue, upstream)
        store = upstream.store
        if git is not None:
            store = stack.enter_context(borrowing(store, git))
            sources = from_git(git, commits, store)
        else:
            sources = from_quilt(quilt) if quilt is not None else from_files(files)
        top = applied(upstream.store, base, queue.series.applied, progress).tree
        made = _append(store, top, queue.series, sources, base.tree, progress)
        after = queue.series.append(made)
        # Not in the borrowing store: what it borrows is gone tomorrow.
        with upstream.store.index(base.tree) as index:
            tree = _tree(index, after)
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
    left_out = tuple(
        (patch.name, field)
        for patch, source in zip(made, sources, strict=True)
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
    )


def _tree(index: Index, series: Series) -> str:
    for patch in series.applied:
        done = index.apply_bytes(patch.text)
        if done.code != 0:
            raise PatchqError(
                f"{patch.file} does not apply once it is written: {done.why}",
                "report this as a bug",
            )
    return index.write()


def _append(
    store: Store,
    top: str,
    series: Series,
    sources: Sequence[Source],
    base: str,
    progress: Progress,
) -> list[Patch]:
    trees = [top]
    with store.index(top) as index:
        for place, source in enumerate(sources):
            progress.step("importing", place, len(sources), "patches")
            trees.append(_apply(index, source, trees[-1]))
    diffs = store.diff_texts(list(pairwise(trees)))
    made: list[Patch] = []
    taken = set(series.names)
    number = series.next_number
    for source, diff in zip(sources, diffs, strict=True):
        wanted = source.brought.name
        free = bool(wanted) and wanted not in taken and patches.FILE.match(f"0000-{wanted}.patch")
        name = wanted if free else patches.slug(wanted or source.brought.header.subject, taken)
        taken.add(name)
        text = diff or patches.empty_diff(_any_file(store, base))
        patch = patches.make(number, name, source.brought.header, text)
        # Reading it refuses what a series cannot hold: submodules, paths that leave the tree.
        assert patch.files is not None, patch.file
        made.append(patch)
        number += 1
    return made


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
    raise PatchqError(
        f"{source.label} ({show(source.brought.header.subject)}) does not apply on top of the"
        f" series: {show(why)}",
        "nothing was imported; import it on the base it was made for, then `patchq sync`",
    )


def _any_file(store: Store, tree: str) -> bytes:
    return min((path for path, _ in store.objects.walk(tree)), default=b"README")
