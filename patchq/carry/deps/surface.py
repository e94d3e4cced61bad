"""What our patched files use of a component, and a release of it lacks."""

from __future__ import annotations

from contextlib import closing

from patchq.carry import contracts
from patchq.carry.canonical import applied, exported
from patchq.carry.components import Components
from patchq.carry.deps.book import Book
from patchq.carry.workspace import base_of, upstream_of
from patchq.config import cache_dir
from patchq.judge.model import Finding
from patchq.progress import SILENT, Progress


def lacks(
    book: Book, name: str, version: str, *, offline: bool = False, progress: Progress = SILENT
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """Findings about the component `name` at `version`, and what could not be looked through.

    The files that the queue's patches touch are read, as a sync reads them.
    """
    queue = book.queue
    if not any(each.name == name and each.modules for each in book.pins.components):
        return (), ()
    components = Components(
        queue.project.upstream,
        cache_dir(),
        changed={name: version},
        offline=offline,
        progress=progress,
    )
    with (
        upstream_of(queue, offline=offline, progress=progress) as upstream,
        closing(components),
    ):
        store = upstream.store
        carry = applied(store, base_of(queue, upstream), queue.series.applied, progress)
        found = contracts.check(
            store,
            carry,
            exported(store, carry),
            lambda: carry,
            cache_dir(),
            components=components,
            progress=progress,
        )
    told = (finding for findings in found.values() for finding in findings)
    return tuple(dict.fromkeys(told)), tuple(components.missing)
