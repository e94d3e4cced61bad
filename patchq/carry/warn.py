"""The carried series with what its patches use and the new release no longer has."""

from __future__ import annotations

from dataclasses import replace

from patchq.carry import contracts
from patchq.carry.canonical import applied, exported
from patchq.carry.causes import cause_of
from patchq.carry.components import Components
from patchq.carry.fold import Carry
from patchq.carry.ranges import Range
from patchq.carry.workspace import Queue
from patchq.config import cache_dir
from patchq.gitstore import log
from patchq.gitstore.log import Commit
from patchq.gitstore.store import Store
from patchq.judge.surface import Name, read
from patchq.progress import SILENT, Progress
from patchq.upstream.releases import Release


def warned(
    queue: Queue,
    base: Release,
    carry: Carry,
    store: Store,
    range_: Range | None,
    *,
    offline: bool,
    progress: Progress = SILENT,
) -> tuple[Carry, tuple[str, ...]]:
    """`carry` with the findings of each kept patch, and sentences on what was not looked through.

    `range_`, upstream's history of the step, names the commits that did it.
    """
    if base.commit == carry.new.commit:
        return carry, ()
    components = Components(queue.project.upstream, cache_dir(), offline=offline, progress=progress)
    series = tuple(each.patch for each in carry.patches)
    try:
        found = contracts.check(
            store,
            carry,
            exported(store, carry),
            lambda: applied(store, base, series, progress),
            cache_dir(),
            components=components,
            blame=Blame(range_) if range_ is not None else None,
            progress=progress,
        )
    finally:
        components.close()
    patches = tuple(
        replace(each, judgement=replace(each.judgement, findings=found[each.patch.name]))
        if each.patch.name in found
        else each
        for each in carry.patches
    )
    return replace(carry, patches=patches), tuple(components.missing)


class Blame:
    """Which upstream commit took a name away, or gave it another form."""

    def __init__(self, range_: Range) -> None:
        self._range = range_

    def __call__(self, path: bytes, name: str, says: str) -> str:
        """The first commit after which the name in the file at `path` is what it is now."""
        touching = [
            (each, change.new_oid)
            for each in self._range.commits
            for change in each.changes
            if change.path == path and len(each.parents) < 2
        ]
        log.bring(self._range.store, [each for each, _ in touching], offline=self._range.offline)
        did: Commit | None = None
        final = self._form(touching[-1][1], name) if touching else None
        for each, oid in reversed(touching):
            if self._form(oid, name) != final:
                break
            did = each
        return cause_of(did).told if did is not None else ""

    def _form(self, oid: str, name: str) -> Name | str | None:
        """The name's definition in that content, without its place; None where it is not there."""
        if not oid.strip("0"):
            return None
        surface = read("m", self._range.store.objects.blob(oid), package=False)
        if surface is None:
            return "unreadable"
        first, *rest = name.split(".")
        found = surface.names.get(first)
        for part in rest:
            found = found.members.get(part) if found is not None else None
        return replace(found, line=0, members={}) if found is not None else None
