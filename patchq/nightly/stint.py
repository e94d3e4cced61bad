"""The stages of one night, run in their order; after each the night is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from patchq.carry.exchange import remove_tree
from patchq.errors import PatchqError
from patchq.gitstore import clone as clones
from patchq.gitstore import snapshot
from patchq.gitstore.project import changed, commit
from patchq.nightly import after, begin, kept, stages
from patchq.nightly.model import Night, Stage, StageState
from patchq.nightly.work import Said, Shift, Work, stamp, utc
from patchq.smoke import evidence

UPSTREAM = ["series", "upstream"]
CLUSTERS = "ci/clusters"
REPORT = "sync.md"


class Stint:
    """What is left of `night`, from the first stage that it has not. `note`: what was not reached
    before the first one, a sentence, or empty; `again`: run although nothing is new."""

    def __init__(
        self, work: Work, night: Night, earlier: tuple[Night, ...], note: str, again: bool
    ) -> None:
        self._work = work
        self._place = work.place
        self._night = night
        self._earlier = earlier
        self._note = note
        self._again = again
        self._holds: bool | None = None

    def through(self, wanted: Sequence[str], every: Sequence[str]) -> Night:
        """Run the stages of `wanted`, of `every` that there are; the night as it ended."""
        why = self._why_not(self._night.stages)
        for name in every:
            if self._night.stage(name) is not None:
                continue
            if name not in wanted:
                if name != "release":
                    self._keep(self._left_out(name, "it was not asked for"))
                continue
            stage = self._left_out(name, why) if why else self._stage(name)
            self._keep(stage)
            why = why or self._why_not([stage])
        needed = [name for name in every if name != "release" or name in wanted]
        quiet = not self._again and self._known() is not None
        state = stages.outcome(self._night.stages, needed)
        if state == "incomplete" and quiet and self._state("sync") == "done":
            state = "quiet"
        self._night = replace(self._night, state=state)
        return self._night

    def _why_not(self, done: Sequence[Stage]) -> str:
        """Why the stages after these have no reason to run; empty where they have."""
        for stage in done:
            if stage.state != "left out" and not stages.goes_on(stage):
                return f"{stage.name} did not come through"
            if stage.name == "sync" and not self._again and (known := self._known()):
                return known
        return ""

    def _known(self) -> str | None:
        """Why this very runner need not be tried again, where it need not."""
        lock = self._night.lock
        if lock is None:
            return None
        green = kept.last(self._earlier, "green")
        if green is not None and green.lock == lock:
            return f"nothing is new since the night {green.name}"
        if not evidence.folder(self._place.root, lock).is_dir():
            return None
        if self._holds is None:
            self._holds = self._work.look(stages.holds(lock), 60).state == "done"
        return "the evidence of this runner holds still" if self._holds else None

    def _state(self, name: str) -> StageState | None:
        found = self._night.stage(name)
        return found.state if found else None

    def _left_out(self, name: str, why: str) -> Stage:
        return Stage(name, "left out", stamp(utc()), 0.0, why)

    def _keep(self, stage: Stage) -> None:
        self._night = replace(self._night, stages=(*self._night.stages, stage))
        kept.save(self._place.folder, self._night)

    def _stage(self, name: str) -> Stage:
        shift = self._work.shift(name)
        try:
            return getattr(self, f"_{name}")(shift)  # type: ignore[no-any-return]
        except PatchqError as problem:
            # Of git, of a file of the project's: as if its command had said so.
            said = f"{problem.message} ({problem.hint})" if problem.hint else problem.message
            if stages.is_elsewhere(problem.message) or problem.exit_code == 6:
                return shift.ended("unreached", said)
            return shift.ended("failed", said)

    def _sync(self, shift: Shift) -> Stage:
        """In a fresh clone, always: what a sync that was killed left there is of no use."""
        folder = self._place.folder
        shift.reports += [folder / REPORT, folder / after.BUNDLE]
        if self._stands_still(shift):
            return shift.ended(says=shift.said[0].says)
        shift.said.clear()
        self._clone(self._night.start)
        synced = self._synced(shift)
        if not stages.goes_on(shift.ended()):
            return shift.ended()
        self._based(synced)
        locked = self._locked(shift)
        if locked.state == "done":
            self._take(locked)
        if self._note and shift.ended().state == "done":
            return shift.ended("unreached", f"{self._note}; {synced.says}")
        if self._note:
            shift.notes.append(self._note)
        return shift.ended(says=synced.says if locked.state == "done" else "")

    def _stands_still(self, shift: Shift) -> bool:
        """Whether the last green night came, from this very start, to what still holds.

        Its series is not merged yet, then; carried anew it would be the same, in a minute more.
        """
        green = kept.last(self._earlier, "green")
        if self._again or self._note or green is None or green.start != self._night.start:
            return False
        root, work, queue = self._place.root, self._work, self._night.queue
        if green.commit is None or snapshot.commit_of(root, green.commit) is None:
            return False
        self._clone(green.commit)
        synced = self._synced(shift)
        if synced.state != "done" or synced.value.get("changed") is not False:
            return False
        locked = work.run(shift, stages.lock(queue))
        if locked.state != "done" or locked.value.get("digest") != green.lock:
            return False
        self._based(synced)
        self._take(locked)
        return True

    def _synced(self, shift: Shift) -> Said:
        report = self._place.folder / REPORT
        return self._work.run(shift, stages.sync(self._work.settings, self._night.queue, report))

    def _clone(self, commit: str) -> None:
        place = self._place
        remove_tree(place.clone)
        clones.clone(place.root, place.clone, commit, self._work.settings.into)
        # Where the machines are is no part of a runner: it may be this project's alone.
        clones.lend(place.root, place.clone, CLUSTERS)

    def _based(self, synced: Said) -> None:
        base = synced.value.get("base")
        if isinstance(base, dict):
            self._night = replace(self._night, base=(str(base["from"]), str(base["to"])))

    def _locked(self, shift: Shift) -> Said:
        """The runner lock, with the target's requirements anew where they are of another base."""
        work, queue, target = self._work, self._night.queue, self._work.settings.target
        locked = work.run(shift, stages.lock(queue))
        has = (self._place.clone / "upstream" / f"requirements.{target}.lock").is_file()
        if locked.state == "done" and has and stages.needs_requirements(locked.value, target):
            return work.run(shift, stages.lock(queue, target))
        return locked

    def _take(self, locked: Said) -> None:
        """Commit what came, and let the project have it, whatever becomes of the clone."""
        place, night = self._place, self._night
        digest = str(locked.value["digest"])
        if changed(place.clone, UPSTREAM):
            commit(place.clone, UPSTREAM, f"lock the runner {digest[:16]}")
        head = snapshot.commit_of(place.clone, "HEAD")
        facts = locked.value.get("facts")
        tree = str(facts["tree"]) if isinstance(facts, dict) else None
        self._night = replace(
            self._night, commit=head if head != night.start else None, tree=tree, lock=digest
        )
        if self._night.commit is not None:
            ref = f"{clones.NIGHTS}{night.name}"
            clones.bring(place.root, place.clone, self._night.commit, ref)
            bundle = place.folder / after.BUNDLE
            clones.bundle(place.clone, night.start, self._night.commit, bundle)

    def _build(self, shift: Shift) -> Stage:
        self._work.run(shift, stages.build(self._work.settings, self._night.queue))
        return shift.ended()

    def _deploy(self, shift: Shift) -> Stage:
        said = self._work.run(shift, stages.deploy(self._work.settings))
        if said.state == "done":
            self._work.start(shift)
        return shift.ended()

    def _smoke(self, shift: Shift) -> Stage:
        if self._work.start(shift):
            self._work.run(shift, stages.smoke(self._work.settings))
        return shift.ended()

    def _bench(self, shift: Shift) -> Stage:
        place = self._place
        asked = begin.bench(place.root, place.clone, place.folder, self._night.lock or "")
        if asked is None:
            return self._left_out("bench", "ci/gate.toml asks for no figures")
        if self._work.start(shift):
            self._work.run(shift, stages.bench(self._work.settings, asked))
        return shift.ended()

    def _gate(self, shift: Shift) -> Stage:
        shift.reports.append(self._place.folder / "gate.html")
        self._work.run(shift, stages.gate(shift.reports[0]))
        return shift.ended()

    def _release(self, shift: Shift) -> Stage:
        """Cut in the clone, then `into`, the tag and the release go out, in this order."""
        self._work.stop()
        place, settings = self._place, self._work.settings
        key = place.root / Path(settings.key or "").expanduser()
        number = after.released(place.clone)
        if number is None:
            said = self._work.run(shift, stages.cut(str(key), self._night.queue))
            if said.state != "done":
                return shift.ended()
            number = int(said.value["number"])
        after.push_release(place, settings, self._night.start, number)
        self._work.run(shift, stages.publish(number))
        return shift.ended()
