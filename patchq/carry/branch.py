"""The commits of a branch as patches, one after the other: merges taken apart where they can be.

A merge of a topic gives the topic's commits, and what the merge itself settled as one more; where
they do not follow each other without that, the merge is one patch. A merge of upstream gives
nothing: the base has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from patchq.carry.incoming import Source
from patchq.errors import PatchqError
from patchq.gitstore.git import run
from patchq.gitstore.store import Store
from patchq.paths import show
from patchq.progress import SILENT, Progress
from patchq.queue import mail
from patchq.upstream.history import local_git_dir
from patchq.upstream.releases import Release


@dataclass(frozen=True)
class Range:
    """The commits of `tip` that `start` does not have; all of them ids.

    `contains` says whether the tip holds all of `start`: then its tree is the one to come to.
    """

    name: str
    start: str
    tip: str
    fork: str
    contains: bool


def git_dir_of(repository: str) -> Path:
    """Raises PatchqError where that is an address, or no repository."""
    git_dir = local_git_dir(repository)
    if git_dir is None:
        raise PatchqError(
            f"{repository} is not a path", "clone the repository and give the clone's path"
        )
    return git_dir


def find(repository: str, commits: str, base: Release) -> Range:
    """`A..B`, or a branch alone: what it has beside the base.

    Raises PatchqError where that names nothing, or the base is not in the repository.
    """
    git_dir = git_dir_of(repository)
    first, dots, last = commits.partition("..")
    if commits.startswith("-") or not commits or (dots and (not last or last.startswith("."))):
        raise PatchqError(
            f"{show(commits)!r} is not a range of commits", "write it as A..B, or name a branch"
        )
    tip = _commit(git_dir, last if dots else commits)
    starts = [_commit(git_dir, first or "HEAD")] if dots else _bases(git_dir, base)
    if tip is None or (dots and starts == [None]):
        raise PatchqError(
            f"{repository} has no range {show(commits)!r}", "name two commits as A..B, or a branch"
        )
    for start in starts:
        done = run(["merge-base", start or tip, tip], git_dir=git_dir, ok=(0, 1))
        if start is not None and (fork := done.out.decode().strip()):
            return Range(last if dots else commits, start, tip, fork, fork == start)
    raise PatchqError(
        f"{show(commits)} does not come from {show(first) if dots else f'the base, {base.name}'}",
        "fetch upstream's tags into that repository, or name the commits as A..B",
    )


def _commit(git_dir: Path, name: str) -> str | None:
    done = run(
        ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"],
        git_dir=git_dir,
        ok=(0, 1, 128),
    )
    return done.out.decode().strip() if done.code == 0 else None


def _bases(git_dir: Path, base: Release) -> list[str | None]:
    """What may be the base's commit in the repository: an archive only says which one it was."""
    names = [base.commit, dict(base.facts).get("upstream-commit", "")]
    names += [f"refs/tags/{base.name}", f"refs/tags/v{base.name}"]
    return [_commit(git_dir, name) for name in names if name]


def sources(store: Store, of: Range, progress: Progress = SILENT) -> list[Source]:
    """The range as patches, oldest first. `store` reads the repository's objects.

    Raises PatchqError where it holds no commits.
    """
    listed = _rev_list(store, "--first-parent", "--parents", of.tip, f"^{of.start}")
    lines = [line.split() for line in listed]
    if not lines:
        raise PatchqError(f"{show(of.name)!r} holds no commits", "is it the wrong way round?")
    found: list[Source] = []
    for place, (commit, *parents) in enumerate(lines):
        progress.step("reading commits", place, len(lines), "commits")
        if not parents:
            raise PatchqError(f"{commit[:12]} has no parent", "start the range behind it")
        if len(parents) == 1:
            found += _plain(store, [commit])
        else:
            found += _merge(store, commit, parents, of.start)
    return found


def whole(store: Store, of: Range, header_of: Sequence[Source]) -> Source:
    """All of the range as one patch, headed as its last commit."""
    (diff,) = store.diff_texts([_ends(store, of)])
    last = header_of[-1].brought
    return Source(mail.Brought(last.header, diff, "", last.left_out), show(of.name), (1,), True)


def expected(store: Store, of: Range, top: str) -> str | None:
    """The tree that the whole range gives on the tree `top`; None where it does not merge."""
    old, new = _ends(store, of)
    if old == top:
        return new
    (diff,) = store.diff_texts([(old, new)])
    if not diff:
        return top
    with store.index(top) as index:
        done = index.apply_bytes(diff, options=["--3way"])
        return index.write() if done.code == 0 else None


def settled(store: Store, of: Range, old: str, new: str) -> Source:
    """What is left between the commits one by one and the branch: its merges said so."""
    (diff,) = store.diff_texts([(old, new)])
    ((_, _, data),) = store.objects.read_many([of.tip])
    head, _, _ = data.partition(b"\n\n")
    message = f"Settle what the merges of {show(of.name)} settled\n".encode()
    return Source(mail.from_commit(head + b"\n\n" + message, diff), show(of.name), (1,), True)


def _ends(store: Store, of: Range) -> tuple[str, str]:
    return store.objects.tree_of(of.fork), store.objects.tree_of(of.tip)


def _rev_list(store: Store, *args: str) -> list[str]:
    return store.git(["rev-list", "--reverse", *args]).out.decode().splitlines()


def _plain(store: Store, commits: Sequence[str]) -> list[Source]:
    """Commits with one parent, each as what it changed."""
    objects = [data for _, _, data in store.objects.read_many(commits)]
    pairs = [(store.objects.tree_of(f"{c}^1"), store.objects.tree_of(c)) for c in commits]
    return [
        Source(mail.from_commit(data, diff), commit[:12], (1,), True, commit)
        for commit, data, diff in zip(commits, objects, store.diff_texts(pairs), strict=True)
    ]


def _merge(store: Store, commit: str, parents: Sequence[str], start: str) -> list[Source]:
    ours, *theirs = parents
    listed = _rev_list(store, "--topo-order", "--no-merges", *theirs, f"^{ours}", f"^{start}")
    if not listed:
        return []
    ((_, _, data),) = store.objects.read_many([commit])
    trees = [store.objects.tree_of(name) for name in (ours, commit)]
    inner = _plain(store, listed)
    with store.index(trees[0]) as index:
        for source in inner:
            diff = source.brought.diff
            if diff and index.apply_bytes(diff, options=["--3way"]).code != 0:
                inner = []
                break
        reached = index.write() if inner else trees[0]
    if inner and reached == trees[1]:
        return inner
    (rest,) = store.diff_texts([(reached, trees[1])])
    return [*inner, Source(mail.from_commit(data, rest), commit[:12], (1,), True, commit)]
