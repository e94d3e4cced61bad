"""The fold with everything that is known beside the trees: history, pull requests, checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from patchq.carry import checks, landings
from patchq.carry.causes import with_causes
from patchq.carry.fold import Carried, Carry, Knowing
from patchq.carry.history import Gatherer
from patchq.carry.ranges import Range, Unreached, opened
from patchq.carry.workspace import Queue
from patchq.gitstore.store import Store
from patchq.judge.model import Signal
from patchq.progress import SILENT, Progress
from patchq.queue import patch as patches
from patchq.queue.patch import Patch
from patchq.queue.series import RETIRED
from patchq.upstream.releases import AsOf, Release

KEPT_IN_MIND = 50
"""Retired patches that are looked at: a revert of one comes soon, or never."""


def informed(
    queue: Queue,
    base: Release,
    target: Release,
    store: Store,
    go: Callable[[Knowing], Carry],
    *,
    offline: bool,
    progress: Progress = SILENT,
) -> Carry:
    """What `go` makes of the series, told what is known; conflicts have their causes.

    `store` holds the releases. Where a patch that would be dropped has checks of its own that fail
    without it, `go` is asked again, with that doubt.
    """
    with opened(queue, base, target, store, offline=offline, progress=progress) as found:
        range_ = found if isinstance(found, Range) else None
        retired = _retired(queue) if range_ is not None else []
        gatherer = Gatherer(queue.config, queue.state.pulls, range_, retired=retired)
        carry = go(gatherer)
        checked = _checked(queue, store, carry, progress)
        if any(signal.says == "needed" for signal in checked.values()):
            carry = go(gatherer.but(checked))
        carry = replace(
            carry,
            patches=tuple(_with(each, checked.get(each.patch.name)) for each in carry.patches),
        )
        if range_ is not None and not range_.failed:
            carry = _shown(with_causes(store, carry, range_), range_, gatherer.names)
        why = found if not isinstance(found, Range) else found.failed
    return replace(carry, history=why, unseen=tuple(gatherer.notes))


def _retired(queue: Queue) -> list[Patch]:
    """The patches that went last because upstream has them."""
    folder = queue.folder / RETIRED
    found = []
    for file in sorted(queue.series.retired, reverse=True)[:KEPT_IN_MIND]:
        patch = patches.parse(file, (folder / file).read_bytes())
        dropped = patch.header.get("Patchq-Dropped")
        if dropped.startswith(("landed", "superseded")) and patch.files is not None:
            found.append(patch)
    return found


def told(as_of: AsOf, carry: Carry) -> AsOf:
    """How much was seen of upstream, with its history or why that was not read."""
    notes = (*as_of.notes, *carry.unseen)
    if not carry.history:
        return replace(as_of, history=carry.history is not None, notes=notes)
    notes = (*notes, f"no history: {carry.history}")
    complete = as_of.complete and not isinstance(carry.history, Unreached)
    return replace(as_of, history=False, complete=complete, notes=notes)


def _checked(queue: Queue, store: Store, carry: Carry, progress: Progress) -> dict[str, Signal]:
    """What the checks of the patches that would go say of upstream without them."""
    run = checks.without(queue.project, queue.config.series, progress)
    found = {}
    for each in carry.patches:
        if each.judgement.action != "drop":
            continue
        done = run(store, each.before, each.patch)
        bad = next((check for check in done if not check.ok), None)
        if bad is not None:
            said = f"its own check fails on upstream's version without it: {bad.detail}"
            found[each.patch.name] = Signal("check", "needed", said)
        elif done:
            said = "its own check passes on upstream's version without it"
            found[each.patch.name] = Signal("check", "landed", said)
    return found


def _with(carried: Carried, signal: Signal | None) -> Carried:
    """With a check that passed as the last piece of evidence; one that failed stands there."""
    if signal is None or signal.says == "needed" or carried.judgement.action != "drop":
        return carried
    evidence = (*carried.judgement.evidence, signal)
    return replace(carried, judgement=replace(carried.judgement, evidence=evidence))


def _shown(carry: Carry, range_: Range, names: Mapping[bytes, bytes]) -> Carry:
    """With what upstream made of each patch that landed with changes."""
    taken = {
        each.patch.name: [signal.ref for signal in each.judgement.evidence if signal.ref]
        for each in carry.patches
        if each.judgement.verdict in ("landed-with-changes", "superseded")
        and each.judgement.action == "drop"
    }
    known = {each.id for each in range_.commits}
    commits = {name: next((r for r in refs if r in known), "") for name, refs in taken.items()}
    wanted = {commit for commit in commits.values() if commit}
    versions = landings.versions(range_, wanted, names)
    return replace(
        carry,
        patches=tuple(
            replace(each, upstream=landings.difference(each.patch, versions[commit]))
            if (commit := commits.get(each.patch.name))
            else each
            for each in carry.patches
        ),
    )
