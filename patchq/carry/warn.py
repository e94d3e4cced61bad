"""The carried series with what its patches use and the new release no longer has."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from patchq.caches import keep
from patchq.carry import contracts
from patchq.carry.canonical import applied
from patchq.carry.causes import cause_of
from patchq.carry.components import Components
from patchq.carry.fold import Carry
from patchq.carry.ranges import Range, opened
from patchq.carry.workspace import Queue
from patchq.config import cache_dir
from patchq.errors import PatchqError
from patchq.gitstore import log
from patchq.gitstore.log import Commit
from patchq.gitstore.store import Store
from patchq.judge.model import Finding
from patchq.judge.surface import READER, Name, read
from patchq.paths import lossless
from patchq.progress import SILENT, Progress
from patchq.queue.patch import Patch
from patchq.upstream.components import FILE
from patchq.upstream.releases import Release

Findings = dict[str, tuple[Finding, ...]]
"""By patch name."""


def warned(
    queue: Queue,
    base: Release,
    target: Release,
    carry: Carry,
    texts: Mapping[str, Patch],
    store: Store,
    *,
    offline: bool,
    progress: Progress = SILENT,
) -> Carry:
    """`carry` with the findings of each kept patch; `unseen` says what was not looked through.

    `texts`: the patches as they read on `target`. Where upstream's history was read, it names the
    commits that did it.
    """
    if base.commit == target.commit:
        return carry
    kept = cache_dir() / "findings" / f"{_key(queue, base, target, carry, texts)}.json"
    found, missing = _read(kept), tuple[str, ...]()
    if found is None:
        blame = Blame(queue, base, target, store, offline, progress)
        components = Components(
            queue.project.upstream,
            cache_dir(),
            but=queue.config.name,
            offline=offline,
            progress=progress,
        )
        with closing(blame), closing(components):
            found = contracts.check(
                store,
                carry,
                texts,
                lambda: applied(store, base, [each.patch for each in carry.patches], progress),
                cache_dir(),
                components=components,
                blame=blame if carry.history == "" else None,
                progress=progress,
            )
        missing = tuple(components.missing)
        if not missing:
            keep(kept, _dumped(found))
    patches = tuple(
        replace(each, judgement=replace(each.judgement, findings=found[each.patch.name]))
        if each.patch.name in found
        else each
        for each in carry.patches
    )
    return replace(carry, patches=patches, unseen=(*missing, *carry.unseen))


def _key(
    queue: Queue, base: Release, target: Release, carry: Carry, texts: Mapping[str, Patch]
) -> str:
    """Everything that the findings are made from."""
    total = hashlib.sha256(READER.encode())
    pins = queue.project.upstream / FILE
    for part in (
        carry.old.tree,
        carry.new.tree,
        *((base.commit, target.commit) if carry.history == "" else ()),
        *(f"{each.patch.name} {each.before} {each.tree}" for each in carry.patches),
    ):
        total.update(part.encode() + b"\0")
    for patch in texts.values():
        total.update(patch.text)
    total.update(pins.read_bytes() if pins.is_file() else b"")
    return total.hexdigest()


def _read(file: Path) -> Findings | None:
    try:
        data = json.loads(file.read_bytes())
        return {
            name: tuple(
                Finding(kind, path.encode("utf-8", "surrogateescape"), says)
                for kind, path, says in each
            )
            for name, each in data.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def _dumped(found: Findings) -> bytes:
    told = {
        name: [(each.kind, lossless(each.path), each.says) for each in findings]
        for name, findings in found.items()
    }
    return json.dumps(told).encode()


class Blame:
    """Which upstream commit took a name away, or gave it another form."""

    def __init__(
        self,
        queue: Queue,
        base: Release,
        target: Release,
        store: Store,
        offline: bool,
        progress: Progress,
    ) -> None:
        self._opened = opened(queue, base, target, store, offline=offline, progress=progress)
        self._stack = ExitStack()

    def close(self) -> None:
        self._stack.close()

    @cached_property
    def _range(self) -> Range | None:
        """Opened where something is to be blamed; None where it cannot be had after all."""
        found = self._stack.enter_context(self._opened)
        return found if isinstance(found, Range) else None

    def __call__(self, path: bytes, name: str, says: str) -> str:
        """The first commit after which the name in the file at `path` is what it is now."""
        if self._range is None:
            return ""
        store = self._range.store
        touching = [
            (each, change.new_oid)
            for each in self._range.commits
            for change in each.changes
            if change.path == path and len(each.parents) < 2
        ]
        try:
            log.bring(store, [each for each, _ in touching], offline=self._range.offline)
        except PatchqError:
            return ""  # the finding stands without it
        did: Commit | None = None
        final = self._form(store, touching[-1][1], name) if touching else None
        for each, oid in reversed(touching):
            if self._form(store, oid, name) != final:
                break
            did = each
        return cause_of(did).told if did is not None else ""

    def _form(self, store: Store, oid: str, name: str) -> Name | str | None:
        """The name's definition in that content, without its place; None where it is not there."""
        if not oid.strip("0"):
            return None
        surface = read("m", store.objects.blob(oid), package=False)
        if surface is None:
            return "unreadable"
        first, *rest = name.split(".")
        found = surface.names.get(first)
        for part in rest:
            found = found.members.get(part) if found is not None else None
        return replace(found, line=0, members={}) if found is not None else None
