"""`patchq nightly`: the stages in order, gone on with where a night was cut short, and told.

A night is `running` on disk until it is over and people were told: whatever kills it before, the
next one goes on where it was, or ends it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from patchq.config import find_project, load_queue
from patchq.errors import PatchqError
from patchq.gitstore import snapshot
from patchq.nightly import after, begin, kept, stages, step
from patchq.nightly import work as works
from patchq.nightly.model import NAMES, Fault, Night, Stage, Told
from patchq.nightly.settings import Settings
from patchq.nightly.stint import Stint
from patchq.nightly.work import Place, Program, Work, stamp, utc
from patchq.progress import SILENT, Progress

ASKED = "asked.json"
"""In a night's folder: what it was asked, by which another one is gone on with or not."""
YOUNG = timedelta(days=1)
"""An older night that was cut short is not gone on with."""
CUT = "it was ended from outside"

Find = Callable[[Night, Path], Fault | None]
Tell = Callable[[Night, Path, tuple[Night, ...]], Told]


@dataclass(frozen=True)
class Asked:
    """What is asked of one night beside the settings. `start`: a commit to begin with; `again`:
    although nothing is new; `until`: the last stage to run."""

    queue: str | None = None
    start: str | None = None
    again: bool = False
    until: str | None = None


@dataclass(frozen=True)
class Hands:
    """What others do for a night; tests give others. `tell` None: nobody is told."""

    find: Find
    tell: Tell | None = None
    program: Program = works.patchq
    now: Callable[[], datetime] = utc
    grace: float = step.GRACE


@dataclass(frozen=True)
class Ran:
    """A night that is over, where it lies, and whether it was gone on with."""

    night: Night
    folder: Path
    resumed: bool = False

    @property
    def exit_code(self) -> int:
        """0 green or quiet, 4 a decision is needed, 5 red, 6 incomplete."""
        return {"green": 0, "quiet": 0, "asks": 4, "red": 5}.get(self.night.state, 6)


@dataclass(frozen=True)
class Plan:
    """What a night would do. `stages`: the commands of each, as far as they are known before."""

    queue: str
    start: str
    nights: Path
    stages: Mapping[str, tuple[stages.Command, ...]] = field(default_factory=dict)


def plan(root: Path, settings: Settings, asked: Asked) -> Plan:
    """What `night` would do; nothing is fetched or written. Raises as `night` does."""
    queue = _checked(root, settings, asked)
    commit = (
        begin.start(root, settings, asked.start, None).commit
        if asked.start
        else begin.known(root, settings)
    )
    nights = settings.folder(root)
    bench = begin.bench(root, root, None, "")
    made = stages.plan(settings, queue, nights / "NAME", bench)
    return Plan(queue, commit, nights, {name: made[name] for name in _wanted(settings, asked)})


def night(
    root: Path, settings: Settings, asked: Asked, hands: Hands, progress: Progress = SILENT
) -> Ran:
    """Run a night, or go on with one that was cut short; the caller's main thread waits for it.

    Raises PatchqError where it cannot begin: another one runs, a cluster or a profile that there is
    not, a commit that is none, a folder that cannot be written. KeyboardInterrupt (SIGTERM as well)
    ends the command that runs, stops the cluster, and leaves a night that can be gone on with.
    """
    queue = _checked(root, settings, asked)
    nights = settings.folder(root)
    with kept.hold(nights), works.interruptible():
        progress.step("looking for what is new")
        start = begin.start(root, settings, asked.start, begin.secret(root, settings))
        there, resumed = _resumed(nights, queue, start.commit, settings, asked, hands)
        if there is None:
            there = _new(nights, queue, start.commit, settings, asked, hands)
        place = Place(root, nights, nights / there.name)
        work = Work(place, settings, hands.program, progress, hands.grace)
        earlier = _earlier(root, nights, there, settings)
        try:
            work.stop()  # what a night that was killed has left
            stint = Stint(work, there, earlier, start.note, asked.again)
            there = stint.through(_wanted(settings, asked), NAMES)
        finally:
            work.stop()
        return Ran(_over(there, earlier, work, hands, progress), place.folder, resumed)


def _checked(root: Path, settings: Settings, asked: Asked) -> str:
    project = find_project(root)
    queue = load_queue(project, asked.queue).name
    if asked.until is not None and asked.until not in NAMES:
        raise PatchqError(
            f"there is no stage {asked.until!r:.40}", f"the stages are: {', '.join(NAMES)}"
        )
    begin.sound(root, project, settings, queue)
    return queue


def _wanted(settings: Settings, asked: Asked) -> tuple[str, ...]:
    names = tuple(name for name in NAMES if name != "release" or settings.publish)
    if asked.until is None or asked.until not in names:
        return names
    return names[: names.index(asked.until) + 1]


def _new(
    nights: Path, queue: str, commit: str, settings: Settings, asked: Asked, hands: Hands
) -> Night:
    now = hands.now()
    made = Night(
        name=kept.next_name(now.date(), kept.names(nights)),
        queue=queue,
        state="running",
        began=stamp(now),
        ended=None,
        start=commit,
    )
    kept.read(kept.write(made))  # a queue whose name no night can have shows now
    folder = nights / made.name
    with kept.room(folder):
        folder.mkdir(parents=True)
        (folder / ASKED).write_text(_asked(settings, asked), encoding="utf-8")
    kept.save(folder, made)
    return made


def _asked(settings: Settings, asked: Asked) -> str:
    told = {
        **{key: getattr(settings, key) for key in ("onto", "target", "cluster", "profile")},
        "publish": settings.publish,
        "again": asked.again,
        "until": asked.until,
    }
    return json.dumps(told, indent=2) + "\n"


def _resumed(
    nights: Path, queue: str, commit: str, settings: Settings, asked: Asked, hands: Hands
) -> tuple[Night | None, bool]:
    """The night that was cut short, where it is gone on with; every other such one is ended."""
    found: Night | None = None
    for each in kept.listed(nights):
        if each.state != "running":
            continue
        if found is not None:
            _close(nights, found, hands)
        found = each
    if found is None:
        return None, False
    folder = nights / found.name
    same = (found.queue, found.start) == (queue, commit) and _text(folder / ASKED) == _asked(
        settings, asked
    )
    young = hands.now() - datetime.fromisoformat(found.began) < YOUNG
    if not (same and young):
        _close(nights, found, hands)
        return None, False
    there = replace(found, stages=_whole(folder, found.stages))
    if there.stages and not _stands(folder / kept.QUEUE, there):
        there = replace(there, stages=(), commit=None, base=None, tree=None, lock=None)
    return there, True


def _whole(folder: Path, done: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """The stages up to the first whose results are not there any more."""
    good: list[Stage] = []
    for stage in done:
        results = [each for each in stage.files if each.endswith(".json")]
        if stage.state == "done" and not all(works.parsed(folder / each) for each in results):
            break
        good.append(stage)
    return tuple(good)


def _stands(clone: Path, there: Night) -> bool:
    """Whether the clone is where the night left it (a release is one commit further)."""
    if not (clone / ".git").exists():
        return False
    wanted = there.commit or there.start
    return wanted in (snapshot.commit_of(clone, "HEAD"), snapshot.commit_of(clone, "HEAD~1"))


def _close(nights: Path, left: Night, hands: Hands) -> None:
    """End a night that nobody goes on with."""
    done = [stage.name for stage in left.stages]
    at = next((name for name in NAMES if name not in done), NAMES[-1])
    fault = left.fault or Fault(at, CUT, (), ("patchq nightly",))
    ended = stamp(hands.now())
    kept.save(nights / left.name, replace(left, state="incomplete", ended=ended, fault=fault))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def _earlier(root: Path, nights: Path, there: Night, settings: Settings) -> tuple[Night, ...]:
    """The nights before: kept here, and where no green one is, those that the project's remote
    knows (a fresh workspace has none of its own)."""
    found = tuple(each for each in kept.listed(nights, there.queue) if each.name != there.name)
    if kept.last(found, "green") is not None:
        return found
    from patchq.nightly import shared

    told = shared.read(root, there.queue, secret=begin.secret(root, settings)).nights
    mine = {each.name for each in found} | {there.name}
    return tuple(
        sorted(
            [*found, *(each for each in told if each.name not in mine)],
            key=lambda each: kept.order(each.name),
        )
    )


def _over(
    there: Night, earlier: tuple[Night, ...], work: Work, hands: Hands, progress: Progress
) -> Night:
    """Say whose fault it is, tell people, and keep the night as one that is over."""
    place = work.place
    if there.state in ("red", "asks", "incomplete"):
        progress.step("looking for the cause")
        after.search(work, there, earlier)
        there = replace(there, fault=hands.find(there, place.folder))
    if there.state == "green":
        with kept.room(place.root / "build"):
            after.hand_over(place, work.settings, there)
    before = earlier[-1].told if earlier else Told()
    there = replace(there, ended=stamp(hands.now()), told=replace(before, says=()))
    if hands.tell is not None:
        progress.step("telling people")
        if there.state == "quiet":
            earlier = _caught_up(place.nights, earlier, hands.tell)
        there = replace(there, told=_told(there, place.folder, earlier, hands.tell))
    kept.save(place.folder, there)
    after.prune(place.root, place.nights, work.settings.keep)
    return there


def _told(there: Night, folder: Path, earlier: tuple[Night, ...], tell: Tell) -> Told:
    try:
        return tell(there, folder, earlier)
    except PatchqError as problem:
        return replace(there.told, says=(f"nobody was told: {problem.message}",))


def _caught_up(nights: Path, earlier: tuple[Night, ...], tell: Tell) -> tuple[Night, ...]:
    """Tell of the last green night again, where that could not be done then: a quiet night after
    it has no news of its own to tell."""
    from patchq.nightly.tell import missed

    green = kept.last(earlier, "green")
    if green is None or not missed(green.told) or not (nights / green.name).is_dir():
        return earlier
    place = earlier.index(green)
    again = replace(green, told=_told(green, nights / green.name, earlier[:place], tell))
    kept.save(nights / green.name, again)
    return (*earlier[:place], again, *earlier[place + 1 :])
