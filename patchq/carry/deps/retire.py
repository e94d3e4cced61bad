"""Patches that may go: those whose own rule says so, with their own check run without them."""

from __future__ import annotations

from collections.abc import Mapping

from patchq.carry.canonical import applied
from patchq.carry.checks import without
from patchq.carry.deps.book import Book
from patchq.carry.deps.model import Retirement
from patchq.carry.pulls.book import DROP_WHEN
from patchq.carry.report import Check
from patchq.carry.workspace import Queue, base_of, upstream_of
from patchq.errors import PatchqError
from patchq.judge.retire import stand
from patchq.progress import SILENT, Progress
from patchq.queue.patch import Patch
from patchq.upstream.releases import Release


def versions(book: Book, changed: Mapping[str, str] | None = None) -> dict[str, str]:
    """What rules compare with: each component's version, and the queue's base."""
    state = book.queue.state
    base = {"base": state.release.removeprefix("v")}
    base[book.queue.config.name] = base["base"]
    found = {each.name: each.version for each in book.pins.components if each.version}
    return {**base, **found, **(changed or {})}


def retirements(
    book: Book,
    pinned: Mapping[str, str],
    newest: Mapping[str, str],
    *,
    onto: Release | None = None,
    of: str = "",
    offline: bool = False,
    progress: Progress = SILENT,
) -> tuple[Retirement, ...]:
    """Every patch whose rule can be read, and how it stands with the versions `pinned`.

    Where it holds, the patch's own checks are run in the tree without it: of the component `of`
    on the release `onto`, else on its queue's base.
    """
    merged = {
        key: pull.state == "merged"
        for queue in (book.queue, *book.queues.values())
        for key, pull in queue.state.pulls.items()
    }
    found = []
    for queue, patch in book.patches:
        here = {**pinned, **_own(queue, book, pinned)}
        for rule in patch.header.all(DROP_WHEN):
            seen = stand(rule, here, newest, merged)
            if seen is None:
                continue
            target = onto if queue.config.name == of else None
            check = tried(queue, patch, target, offline, progress) if seen.holds else None
            found.append(
                Retirement(queue.config.name, patch.name, rule, seen.holds, seen.by, check)
            )
    return tuple(found)


def _own(queue: Queue, book: Book, pinned: Mapping[str, str]) -> dict[str, str]:
    """`base` in a component's own series is that component."""
    name = queue.config.name
    return {"base": pinned[name]} if queue is not book.queue and name in pinned else {}


def tried(
    queue: Queue, patch: Patch, onto: Release | None, offline: bool, progress: Progress
) -> Check | None:
    """The patch's own checks in the tree without it; None where it has none that may run here."""
    if not patch.header.checks:
        return None
    name = f"check of {patch.name} without it"
    with upstream_of(queue, offline=offline, progress=progress) as upstream:
        rest = [each for each in queue.series.applied if each.name != patch.name]
        try:
            tree = applied(upstream.store, onto or base_of(queue, upstream), rest, progress).tree
        except PatchqError:
            return Check(name, False, "later patches build on it, so it cannot just go")
        run = without(queue.project, queue.config.series, progress)
        done = run(upstream.store, tree, patch)
    bad = next((each for each in done if not each.ok), None)
    if not done:
        return None
    return Check(name, bad is None, bad.detail if bad else f"{len(done)} passed")
