"""The carried series with what its patches use and the new release no longer has."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

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
from patchq.judge.model import Finding
from patchq.judge.surface import READER, Name, read
from patchq.progress import SILENT, Progress
from patchq.queue.patch import Patch
from patchq.upstream.components import FILE
from patchq.upstream.releases import Release

LOSSLESS = ("utf-8", "surrogateescape")


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
    texts = exported(store, carry)
    kept = cache_dir() / "findings" / f"{_key(queue, carry, texts, range_)}.json"
    found, missing = _read(kept)
    if found is None:
        found, missing = _look(
            queue, base, carry, texts, store, range_, offline=offline, progress=progress
        )
        if not missing:
            _keep(kept, found)
    patches = tuple(
        replace(each, judgement=replace(each.judgement, findings=found[each.patch.name]))
        if each.patch.name in found
        else each
        for each in carry.patches
    )
    return replace(carry, patches=patches), missing


def _look(
    queue: Queue,
    base: Release,
    carry: Carry,
    texts: Mapping[str, Patch],
    store: Store,
    range_: Range | None,
    *,
    offline: bool,
    progress: Progress,
) -> tuple[dict[str, tuple[Finding, ...]], tuple[str, ...]]:
    components = Components(queue.project.upstream, cache_dir(), offline=offline, progress=progress)
    series = tuple(each.patch for each in carry.patches)
    try:
        found = contracts.check(
            store,
            carry,
            texts,
            lambda: applied(store, base, series, progress),
            cache_dir(),
            components=components,
            blame=Blame(range_) if range_ is not None else None,
            progress=progress,
        )
    finally:
        components.close()
    return found, tuple(components.missing)


def _key(queue: Queue, carry: Carry, texts: Mapping[str, Patch], range_: Range | None) -> str:
    """Everything that the findings are made from."""
    total = hashlib.sha256(READER.encode())
    pins = queue.project.upstream / FILE
    for part in (
        carry.old.tree,
        carry.new.tree,
        *((range_.old, range_.new) if range_ is not None else ()),
        *(f"{each.patch.name} {each.before} {each.tree}" for each in carry.patches),
    ):
        total.update(part.encode() + b"\0")
    for patch in texts.values():
        total.update(patch.text)
    total.update(pins.read_bytes() if pins.is_file() else b"")
    return total.hexdigest()


def _read(file: Path) -> tuple[dict[str, tuple[Finding, ...]] | None, tuple[str, ...]]:
    try:
        data = json.loads(file.read_bytes())
        return {
            name: tuple(Finding(kind, path.encode(*LOSSLESS), says) for kind, path, says in each)
            for name, each in data.items()
        }, ()
    except (OSError, ValueError, TypeError, AttributeError):
        return None, ()


def _keep(file: Path, found: Mapping[str, tuple[Finding, ...]]) -> None:
    """A cache: where it cannot be written, the next sync looks again."""
    told = {
        name: [(each.kind, each.path.decode(*LOSSLESS), each.says) for each in findings]
        for name, findings in found.items()
    }
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(json.dumps(told), encoding="ascii")
        os.replace(beside, file)
    except OSError:
        beside.unlink(missing_ok=True)


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
