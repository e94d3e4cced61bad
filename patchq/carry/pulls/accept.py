"""Take the new head of a pull request into the series, under the same names and numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

from patchq.carry import plan
from patchq.carry.canonical import applied
from patchq.carry.checks import runner
from patchq.carry.prove import prove
from patchq.carry.pulls import look
from patchq.carry.pulls.book import PR, Entry
from patchq.carry.pulls.compare import Opened, pieces
from patchq.carry.pulls.model import Stop
from patchq.carry.pulls.renew import Exchange, renew
from patchq.carry.report import Proof
from patchq.carry.workspace import base_of
from patchq.errors import PatchqError, ProofFailed
from patchq.queue.header import Header
from patchq.queue.patch import Patch


@dataclass(frozen=True)
class Accepted:
    """The patches as they read with the new head, and what is to be written for them."""

    patches: tuple[Patch, ...] = ()
    dropped: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    stops: tuple[Stop, ...] = ()
    tree: str = ""
    proof: Proof = field(default_factory=Proof)
    changes: dict[str, bytes | None] = field(default_factory=dict)


def accept(opened: Opened, entry: Entry) -> Accepted:
    """Exchange every patch that carries `entry` for today's head, and prove the series.

    Raises PatchqError where a head is not reached; ProofFailed.
    """
    queue = opened.queue
    assert entry.pull is not None
    head = entry.pull.head_sha
    state = look.pinned(queue.state, entry.key, head)
    names = [use.patch for use in entry.uses if use.role == "carries" and use.pin]
    ours = [patch for patch in queue.series.applied if patch.name in names]
    held = [name for name in names if name in queue.series.held]
    if held:
        raise PatchqError(
            f"{', '.join(held)} of {entry.key} is held: it is not carried onto anything",
            f"`patchq unhold {held[0]}` first",
        )
    if not ours:
        return Accepted(changes={**queue.state_file(state)})
    was, wants = pieces(opened, entry, len(ours))
    upstream = opened.upstream
    base = base_of(queue, upstream)
    whole = applied(upstream.store, base, queue.series.applied, opened.progress)
    exchanges = {
        patch.name: Exchange(old, new, repinned(patch.header, entry.key, head))
        for patch, old, new in zip(ours, was, wants, strict=True)
    }
    source = opened.source(entry.pull.repo)
    source.follow([*was, *wants], whole.tree)
    done = renew(source.store, whole, exchanges)
    if done.stops:
        return Accepted(stops=done.stops)
    after = plan.next_series(queue.series, done.carried, done.texts)
    dropped = {
        each.patch.file: plan.retired_text(each.patch, each.judgement, f"{entry.key} @ {head}")
        for each in done.carried
        if each.judgement.action == "drop"
    }
    opened.progress.step("proving")
    checks = runner(queue.project, queue.config.series, opened.progress)
    proof = prove(
        upstream.store,
        base.tree,
        after.applied,
        done.tree,
        run_checks=checks,
        progress=opened.progress,
    )
    if not proof.ok:
        bad = next(check for check in proof.checks if not check.ok)
        raise ProofFailed(
            f"the series with the new head of {entry.key} does not hold: {bad.name}: {bad.detail}",
            "nothing was changed; `patchq pr refresh N --hold` keeps the pinned head",
        )
    changes = plan.changes(queue.config.series, queue.series, after, dropped)
    changes |= queue.state_file(state.proved(after.digest, done.tree))
    before = {patch.name: patch.text for patch in queue.series.applied}
    return Accepted(
        tuple(patch for patch in after.applied if before[patch.name] != patch.text),
        tuple(dropped),
        done.edited,
        (),
        done.tree,
        proof,
        changes,
    )


def repinned(header: Header, key: str, head: str) -> Header:
    """The header with `key` pinned to `head`; other pull requests that it names stay."""
    values = [
        f"{key} @ {head}" if value.split()[:1] == [key] else value for value in header.all(PR)
    ]
    return header.replace(PR, *values)
