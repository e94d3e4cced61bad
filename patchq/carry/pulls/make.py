"""Make patches of a pull request, on top of a queue's series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from patchq.carry import plan
from patchq.carry.canonical import applied
from patchq.carry.fold import Release as Side
from patchq.carry.prove import prove
from patchq.carry.pulls import look, revert, take
from patchq.carry.pulls.book import PR
from patchq.carry.pulls.model import Stop
from patchq.carry.pulls.put import put, stop
from patchq.carry.pulls.spans import Source, source
from patchq.carry.pulls.take import EXCLUDE, Piece
from patchq.carry.report import Proof
from patchq.carry.workspace import Queue, base_of, upstream_of
from patchq.errors import PatchqError, ProofFailed
from patchq.gitstore.store import Store
from patchq.progress import SILENT, Progress
from patchq.queue import patch as patches
from patchq.queue.header import Header
from patchq.queue.patch import Patch
from patchq.upstream.pulls import Pull
from patchq.upstream.state import QueueState

STATUS = {"merged": "Backport", "closed": "Denied"}
"""Upstream-Status (Yocto's words) of a patch by its pull request's state; else Submitted."""


@dataclass(frozen=True)
class How:
    """What is made of the pull request. `name` calls the (first) patch, `topic` sorts it."""

    bring: bool = False
    revert: bool = False
    per_commit: bool = False
    exclude: tuple[str, ...] = ()
    name: str = ""
    topic: str = ""

    @property
    def makes(self) -> bool:
        return self.bring or self.revert


@dataclass(frozen=True)
class Made:
    """The new patches and what is to be written for them; nothing where `stops` is not empty."""

    state: QueueState
    patches: tuple[Patch, ...] = ()
    head: str = ""
    left_out: tuple[bytes, ...] = ()
    there: tuple[str, ...] = ()
    stops: tuple[Stop, ...] = ()
    notes: tuple[str, ...] = ()
    tree: str = ""
    proof: Proof = field(default_factory=Proof)
    changes: dict[str, bytes | None] = field(default_factory=dict)


def require_free(queue: Queue, how: How) -> None:
    """Raises PatchqError for a name that is taken or none."""
    if how.name and (
        how.name in queue.series.names or not patches.FILE.match(f"0001-{how.name}.patch")
    ):
        raise PatchqError(
            f"{how.name!r} cannot be the patch's name", "choose one of a-z, 0-9 and -, not in use"
        )


def make(
    queue: Queue,
    state: QueueState,
    key: str,
    how: How,
    *,
    offline: bool = False,
    progress: Progress = SILENT,
) -> Made:
    """The patches of the pull request `key`, carried onto the series and proved there.

    Raises PatchqError where it cannot be reached, or the base has all of it; ProofFailed.
    """
    repo, _, number = key.rpartition("#")
    pull = state.pulls.get(key)
    with (
        upstream_of(queue, offline=offline, progress=progress) as upstream,
        source(queue, upstream.store, repo, offline=offline, progress=progress) as pulls,
    ):
        base = base_of(queue, upstream)
        top = applied(upstream.store, base, queue.series.applied, progress)
        head = pulls.head(int(number), pull)
        pieces, notes = _pieces(queue, pulls, key, int(number), head, pull, how)
        at = Side(f"{queue.config.name} on {base.name}", top.commit, top.tree)
        pulls.follow(pieces, top.tree)
        done = put(pulls.store, at, queue.series, pieces, how.name, progress)
        left_out = tuple(sorted({path for piece in pieces for path in piece.left_out}))
        stops = tuple(map(stop, done.asks))
        there = tuple(each.patch.header.subject for each in done.there)
        if stops:
            return Made(state, (), head, left_out, there, stops, notes)
        if not done.patches:
            raise PatchqError(
                f"{base.name} and the series have all of {key} already: "
                + "; ".join(s.detail for s in done.there[0].judgement.evidence),
                "track it without --import" if how.bring else "there is nothing to take back",
            )
        after = queue.series.append(list(done.patches))
        progress.step("proving")
        # Not in the store that borrows: what it borrows may be gone tomorrow.
        proof = prove(
            upstream.store,
            base.tree,
            after.applied,
            done.top.tree,
            patched_before=_before(pulls.store, pieces, top.tree),
            progress=progress,
        )
    if not proof.ok:
        bad = next(check for check in proof.checks if not check.ok)
        raise ProofFailed(
            f"the series with {key} does not hold: {bad.name}: {bad.detail}",
            "nothing was imported",
        )
    changes = plan.changes(queue.config.series, queue.series, after, {})
    new_state = look.pinned(state, key, head).proved(after.digest, done.top.tree)
    return Made(
        new_state, done.patches, head, left_out, there, (), notes, done.top.tree, proof, changes
    )


def _before(store: Store, pieces: Sequence[Piece], tree: str) -> Callable[[bytes], bytes | None]:
    """A path's content as the pull request has it, else as the series has it, whose tree is `tree`.

    What stands twice there already is not ours.
    """
    changed = {path for piece in pieces for path in take.paths(piece.diff)}

    def read(path: bytes) -> bytes | None:
        where = store.objects.tree_of(pieces[-1].new) if path in changed else tree
        entry = store.objects.lookup(where, path)
        return store.objects.blob(entry.oid) if entry else None

    return read


def _pieces(
    queue: Queue,
    pulls: Source,
    key: str,
    number: int,
    head: str,
    pull: Pull | None,
    how: How,
) -> tuple[Sequence[Piece], tuple[str, ...]]:
    title = pull.title if pull is not None else ""
    if how.revert:
        span, known = revert.landed(pulls, number, head, pull)
        if known and not title:
            title = revert.subject(pulls.heads.store, span.head)
        who = revert.maintainer(str(queue.project.root))
        told = revert.header(key, title, span, known, who)
        notes = () if known else (f"what landed of {key} is not known: its head is taken back",)
        made = [take.reverse(pulls.store, span, how.exclude, told)]
        return [_with(piece, how, {}) for piece in made], notes
    span = pulls.span(head, pull)
    if how.per_commit:
        made = take.each_commit(pulls.store, span, how.exclude)
    else:
        made = [take.whole(pulls.store, span, how.exclude, title)]
    state = pull.state if pull is not None else "unknown"
    fields = {
        "Origin": f"{'backport' if state == 'merged' else 'upstream'}, {page(queue, key)}",
        "Upstream-Status": STATUS.get(state, "Submitted"),
        PR: f"{key} @ {head}",
    }
    return [_with(piece, how, fields) for piece in made], ()


def _with(piece: Piece, how: How, fields: dict[str, str]) -> Piece:
    header: Header = piece.header
    for name, value in fields.items():
        header = header.replace(name, value)
    if how.topic:
        header = header.replace("Patchq-Topic", how.topic)
    if how.exclude:
        header = header.replace(EXCLUDE, *how.exclude)
    return Piece(piece.old, piece.new, header, piece.diff, piece.left_out)


def page(queue: Queue, key: str) -> str:
    """The pull request's address for people."""
    repo, _, number = key.rpartition("#")
    api = urlsplit(queue.config.github_api or "https://github.com")
    host = "github.com" if api.netloc == "api.github.com" else api.netloc
    return f"{api.scheme}://{host}/{repo}/pull/{number}"
