"""The bases from A's to B's: the two releases, or upstream's commits between them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from patchq.bisect import said
from patchq.bisect.ends import End
from patchq.bisect.model import Move
from patchq.bisect.stacking import Base
from patchq.config import Source
from patchq.errors import PatchqError
from patchq.gitstore import log
from patchq.progress import SILENT, Progress
from patchq.upstream.history import History
from patchq.upstream.releases import Upstream
from patchq.upstream.sources import open_source

MOST = 4096
"""Upstream's commits between two bases that are moves of their own."""


@contextmanager
def opened(
    root: Path, source: Source, *, offline: bool = False, progress: Progress = SILENT
) -> Iterator[Upstream]:
    """Upstream with its store, the same that every other command uses."""
    upstream = open_source(source, root, offline=offline, progress=progress)
    try:
        yield upstream
    finally:
        upstream.close()


def base_of(upstream: Upstream, end: End) -> Base:
    """The base of an end, as it was. Raises PatchqError where upstream has another one now."""
    state = end.queue.state
    found = upstream.release(state.release, commit=state.commit)
    if found.tree != state.tree:
        raise PatchqError(
            f"upstream's {state.release} has the tree {found.tree[:12]} now, {end.label} recorded"
            f" {state.tree[:12]}",
            "find out who changed a release; a bisection needs both bases as they were",
        )
    return Base(state.release, found.commit, found.tree, found.facts)


def between(
    upstream: Upstream, bases: list[Base], end: End, commits: bool
) -> tuple[list[Base], list[Move]]:
    """The bases from A's to B's, and the moves that lead over them."""
    first, last = bases
    name = f"base/{last.name}"
    names = said.text(first.name), said.text(last.name)
    whole = Move(name, "base", f"base {names[0]} to {names[1]}", said.base_url(end, last))
    simple = [first, replace(last, move=name)], [whole]
    if not commits or not isinstance(upstream, History):
        return simple
    store = upstream.store
    done = store.git(["merge-base", first.commit, last.commit], ok=(0, 1))
    fork = done.out.decode().strip()
    if not fork:
        return simple
    listed = ["rev-list", "--first-parent", "--reverse", last.commit, f"^{fork}"]
    line = store.git(listed).out.decode().split()
    if not line or len(line) > MOST:
        return simple
    bases, found = [first], list[Move]()
    if fork != first.commit:
        name = f"base/{fork}"
        says = f"base {names[0]} back to {fork[:12]}, where the way to {names[1]} leaves it"
        bases.append(Base(fork, fork, store.objects.tree_of(fork), move=name))
        found.append(Move(name, "base", says, said.commit_url(end, fork)))
    trees = store.objects.trees_of(line)
    for commit, tree in zip(log.words(store, line), trees, strict=True):
        needs = frozenset({found[-1].name}) if found else frozenset[str]()
        says = said.commit(commit.id, commit.subject, commit.author)
        found.append(Move(commit.id, "commit", says, said.commit_url(end, commit.id), needs))
        bases.append(Base(commit.id, commit.id, tree, move=commit.id))
    bases[-1] = replace(last, move=bases[-1].move)
    return bases, found
