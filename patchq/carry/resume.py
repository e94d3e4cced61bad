"""A sync that stops and goes on: open a session, take what was resolved, hold back, answer, end.

Each command folds the whole series anew with what was said so far. Whatever the user does with the
working tree, with upstream's branches or with the series meanwhile, there is no state to repair.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from patchq.carry import session, shelf
from patchq.carry.answers import Decision, Said, evidence_id
from patchq.carry.fold import Carry
from patchq.carry.pulls.watch import as_seen
from patchq.carry.report import SyncReport
from patchq.carry.session import Session
from patchq.carry.solve import solve
from patchq.carry.stand import Stand, picture
from patchq.carry.step import Step, attempt, carried, record
from patchq.carry.workspace import Queue, base_of, upstream_of
from patchq.errors import PatchqError
from patchq.gitstore.store import Store
from patchq.progress import SILENT, Progress
from patchq.queue.patch import Patch
from patchq.upstream.releases import Release, Upstream


@dataclass(frozen=True)
class Ongoing:
    """An open session with all that it stands on; `notes` say what changed since it was opened."""

    queue: Queue
    upstream: Upstream
    now: Session
    base: Release
    target: Release
    progress: Progress
    notes: tuple[str, ...] = ()

    @property
    def store(self) -> Store:
        return self.upstream.store

    @property
    def stand(self) -> Stand:
        return Stand(self.queue.project, self.store, self.queue.config.name)

    def attempt(self) -> Step:
        """The step with everything that was said so far."""
        as_of = self.upstream.as_of()
        said = self.now.said
        return attempt(self.queue, self.base, self.target, as_of, self.store, self.progress, said)

    def carried(self, *, but: str = "") -> Carry:
        """The same without the proof; an answer about the patch `but` is not counted."""
        args = (self.queue, self.base, self.target, self.store, self.progress, self.now.said)
        return carried(*args, but=but)

    def saying(self, said: Said) -> Ongoing:
        return replace(self, now=replace(self.now, said=said))


def begin(
    queue: Queue, upstream: Upstream, base: Release, target: Release, step: Step
) -> SyncReport:
    """Open a session for what `step` asks: its tree shows the first patch."""
    now = Session(
        queue.config.name,
        shelf.root_name(queue.project),
        shelf.now().isoformat(),
        base.name,
        target.name,
        target.commit,
        target.tree,
        queue.series.digest,
    )
    return _ask(Ongoing(queue, upstream, now, base, target, SILENT), step)


def resume(queue: Queue, upstream: Upstream, now: Session, progress: Progress = SILENT) -> Ongoing:
    """The session `now`, on the release that it is pinned to.

    Raises PatchqError where upstream has another content under that name.
    """
    queue = as_seen(queue)
    target = upstream.release(now.onto, commit=now.commit)
    if target.tree != now.tree:
        raise PatchqError(
            f"upstream's {now.onto} has another content than when the session was opened",
            "`patchq sync --abort`, then sync again",
        )
    notes = []
    if queue.series.digest != now.series:
        notes.append("The series was changed since; it is carried as it is now.")
    if queue.state.release != now.base:
        notes.append(f"The queue is on {queue.state.release} now; it was on {now.base}.")
    now = replace(now, series=queue.series.digest, base=queue.state.release)
    target = Release(now.onto, target.commit, target.tree, target.facts)
    return Ongoing(queue, upstream, now, base_of(queue, upstream), target, progress, tuple(notes))


@contextmanager
def ongoing(
    queue: Queue, *, offline: bool = False, progress: Progress = SILENT
) -> Iterator[Ongoing]:
    """The open session of `queue`. Raises PatchqError where there is none."""
    now = session.needed(queue.project, queue.config.name)
    with upstream_of(queue, offline=offline, progress=progress) as upstream:
        yield resume(queue, upstream, now, progress)


def again(work: Ongoing) -> SyncReport:
    """Where the session stands. It goes on by itself where nothing is asked any more."""
    return _next(work, work.attempt())


def go_on(work: Ongoing) -> SyncReport:
    """Take what the tree says of the patch that it shows, and go on.

    Raises PatchqError where it is not resolved yet.
    """
    stopped = {each.patch.name: each for each in work.carried().asks}
    work = replace(work, now=work.stand.mended(work.now))
    shown = work.now.shown
    if shown is None or shown.patch not in stopped:
        return again(work)
    patch = stopped[shown.patch]
    wanted = picture(work.store, patch)
    if not work.stand.exists:
        gone = "The session's tree was gone; it shows the conflict anew."
        return again(replace(work, notes=(*work.notes, gone)))
    assert patch.stop is not None
    torn = {clash.new_path for clash in patch.stop.clashes}
    tree = work.stand.over(shown, wanted, torn)
    if tree is None:
        return again(work)
    fresh = solve(work.store, patch, wanted, tree, (work.base.name, work.target.name))
    names = {each.file for each in fresh}
    said = work.now.said
    kept = tuple(each for each in said.fresh if each.file not in names)
    work = work.saying(replace(said, fresh=(*kept, *fresh)))
    return _next(work, work.attempt(), taken=work.stand.written())


def skip(work: Ongoing, name: str) -> SyncReport:
    """Hold the patch `name` back, and go on."""
    patch = _applied(work.queue, name)
    asks = {each.patch.name: each.judgement for each in work.carried().asks}
    found = asks.get(patch.name)
    torn = sorted({each.kind for each in found.conflicts}) if found else []
    why = f"conflicts on {work.target.name} ({', '.join(torn)})" if torn else "held back"
    said = work.now.said
    work = work.saying(replace(said, held={**said.held, patch.name: why}))
    return _next(work, work.attempt())


def answer(work: Ongoing, name: str, word: str, why: str) -> tuple[Decision, SyncReport]:
    """Take an answer to what is asked about the patch `name`, and go on.

    Raises PatchqError where nothing is asked, or the patch conflicts and shall be kept.
    """
    patch = _applied(work.queue, name)
    said = work.now.said
    decision = decided(work.carried(but=patch.name), patch, work.target.name, word, why)
    work = work.saying(replace(said, decisions={**said.decisions, patch.name: decision}))
    return decision, _next(work, work.attempt())


def decided(carry: Carry, patch: Patch, onto: str, word: str, why: str) -> Decision:
    """The answer `word` to what `carry` asks about `patch`, bound to the evidence.

    Raises PatchqError where it asks nothing, or where keeping the patch means to resolve it.
    """
    asks = {each.patch.name: each.judgement for each in carry.asks}
    judgement = asks.get(patch.name)
    if judgement is None:
        raise PatchqError(
            f"nothing is asked about {patch.name} on {onto}",
            "see `patchq sync --dry-run`; name the release with --onto",
        )
    if word == "keep" and judgement.conflicts:
        raise PatchqError(
            f"{patch.name} conflicts on {onto}: it cannot be kept as it is",
            "resolve it in the session that `patchq sync` opens, or drop it",
        )
    return Decision(word, why, evidence_id(judgement))


def _applied(queue: Queue, name: str) -> Patch:
    patch = queue.series.find(name)
    if patch.name in queue.series.held:
        raise PatchqError(f"{patch.name} is held already", "it asks nothing while it is")
    return patch


def _next(work: Ongoing, step: Step, *, taken: str = "") -> SyncReport:
    """Show what is asked next; record everything where nothing is."""
    queue, name = work.queue, work.queue.config.name
    if step.carry.asks:
        return _ask(work, step, taken=taken)
    if step.report.changed and not step.report.proof.ok:
        # The session stays as it was: what was resolved last can be resolved in another way.
        place = str(work.stand.folder)
        shown = work.now.shown.patch if work.now.shown else ""
        return replace(step.report, session=place, shown=shown, notes=work.notes)
    report = record(queue, step, work.progress) if step.ready else step.report
    session.remove(queue.project, name)
    return replace(report, notes=work.notes)


def _ask(work: Ongoing, step: Step, *, taken: str = "") -> SyncReport:
    first = step.carry.asks[0]
    stand = work.stand
    _, told = stand.show(stand.mended(work.now), picture(work.store, first), taken=taken)
    notes = (*work.notes, *([told] if told else []))
    return replace(step.report, session=str(stand.folder), shown=first.patch.name, notes=notes)
