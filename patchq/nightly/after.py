"""What becomes of a night's work: a search for the culprit, the project's own folders, releases."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from patchq.carry.exchange import copy_tree, remove_tree
from patchq.errors import Incomplete, PatchqError
from patchq.gitstore import clone as clones
from patchq.gitstore import snapshot
from patchq.gitstore.files import write
from patchq.nightly import begin, kept, stages
from patchq.nightly.model import Night
from patchq.nightly.settings import Settings
from patchq.nightly.work import Place, Work, parsed
from patchq.smoke import evidence

BUNDLE = "series.bundle"
FOUND = "bisect.json"


def search(work: Work, night: Night, earlier: tuple[Night, ...]) -> None:
    """Look for what of all that moved since the last green night made smoke fail: `bisect.json`.

    Nothing is done where nobody knows a green night, its commit is not here, or no time is given.
    What the night before has found of this very runner is taken over.
    """
    place, settings = work.place, work.settings
    smoke, green = night.stage("smoke"), kept.last(earlier, "green")
    minutes = settings.minutes["culprit"]
    if smoke is None or smoke.state != "failed" or green is None or minutes == 0:
        return
    good = _commit(place, green)
    shows = showing(settings, parsed(place.folder / "smoke.json"))
    if good is None or shows is None:
        return
    last = earlier[-1]
    if last.state == "red" and last.lock == night.lock:
        file = place.nights / last.name / FOUND
        if parsed(file).get("culprit"):
            shutil.copyfile(file, place.folder / FOUND)
            return
    bad = night.commit or night.start
    work.look(stages.bisect(settings, night.queue, good, bad, shows), minutes * 60)


def _commit(place: Place, green: Night) -> str | None:
    """The green night's commit, in the clone: by the project, or from that night's own clone."""
    wanted = green.commit or green.start
    theirs = place.nights / green.name / kept.QUEUE
    if snapshot.commit_of(place.clone, wanted) is None and (theirs / ".git").is_dir():
        with suppress(PatchqError):
            clones.bring(place.clone, theirs, wanted, f"{clones.NIGHTS}{green.name}")
    return snapshot.commit_of(place.clone, wanted)


def showing(settings: Settings, smoked: Mapping[str, Any]) -> str | None:
    """The command that asks the first failed probe again, of what bisect starts on the cluster.

    By the cluster, as the night did: its nodes may be reached by ssh alone.
    """
    probes = smoked.get("probes")
    failed = [
        str(each.get("name"))
        for each in (probes if isinstance(probes, list) else ())
        if isinstance(each, dict) and each.get("state") == "failed"
    ]
    if not failed:
        return None
    seed = smoked.get("seed")
    again = ("--seed", str(seed)) if type(seed) is int else ()
    where = ("--cluster", settings.cluster, "--profile", settings.profile)
    return shlex.join(("patchq", "smoke", *where, "--only", failed[0], *again))


def hand_over(place: Place, settings: Settings, night: Night) -> None:
    """Let the project have the wheels and the evidence of a green night, as if made there."""
    if night.lock is None:
        return
    for file in sorted(evidence.folder(place.clone, night.lock).glob("*.json")):
        write(evidence.folder(place.root, night.lock) / file.name, file.read_bytes())
    _exchange(place.clone / "build" / settings.target, place.root / "build" / settings.target)


def _exchange(made: Path, there: Path) -> None:
    if not made.is_dir():
        return
    fresh, old = (there.with_name(f".{there.name}.{end}") for end in ("new", "old"))
    for each in (fresh, old):
        remove_tree(each)
    there.parent.mkdir(parents=True, exist_ok=True)
    copy_tree(made, fresh, {})
    with suppress(FileNotFoundError):
        os.rename(there, old)
    os.rename(fresh, there)
    remove_tree(old)


def released(clone: Path) -> int | None:
    """The number of the release that the clone stands on."""
    head = snapshot.commit_of(clone, "HEAD")
    for tag in snapshot.tags(clone, "release-"):
        number = tag.removeprefix("release-")
        if number.isdecimal() and snapshot.commit_of(clone, f"refs/tags/{tag}") == head:
            return int(number)
    return None


def push_release(place: Place, settings: Settings, start: str, number: int) -> None:
    """Let the branch `into` and the tag go out, and the bundle into the project.

    Raises Incomplete where the branch moved meanwhile, or the remote does not take them.
    """
    from patchq.gitstore.push import push

    head = snapshot.commit_of(place.clone, "HEAD")
    secret = begin.secret(place.root, settings)
    if head is None:
        raise PatchqError("the night's clone has no commit", "run `patchq nightly` again")
    try:
        push(place.clone, "origin", head, settings.into, expected=start, secret=secret)
    except Incomplete as problem:
        raise Incomplete(
            f"release {number} does not go out: {problem.message}", problem.hint
        ) from problem
    clones.push_tag(place.clone, "origin", f"release-{number}", secret=secret)
    _exchange(*(each / "build" / "releases" / str(number) for each in (place.clone, place.root)))


def prune(root: Path, nights: Path, keep: int) -> None:
    """Let go of what is not kept of nights that are over, and of the commits of those gone."""
    with kept.room(nights):
        for name in kept.prune(nights, keep):
            clones.drop(root, f"{clones.NIGHTS}{name}")
