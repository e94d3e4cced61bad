"""May this be a release? What stands in the project, held against itself; nothing is changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patchq.build import lockfacts
from patchq.build.deployable import bundle as wheels_of
from patchq.build.lock import RunnerLock
from patchq.build.overlay import Wanted
from patchq.build.provenance_made import RECORD
from patchq.build.requirements import file_name
from patchq.build.target import TARGETS, Target
from patchq.carry import inspect, session
from patchq.carry.workspace import Queue
from patchq.cluster import profile as profiles
from patchq.cluster.profile import Profile
from patchq.errors import PatchqError
from patchq.gitstore import tags
from patchq.paths import show
from patchq.progress import SILENT, Progress
from patchq.queue import series as serieses
from patchq.release.bundle import Check
from patchq.work.look import look

if TYPE_CHECKING:
    from patchq.smoke.gate_model import Gate
    from patchq.smoke.identity import Identity


@dataclass(frozen=True)
class Built:
    """The build that the evidence is about. `record` is its build.json, `wheels` its files."""

    target: Target
    folder: Path
    record: Mapping[str, Any]
    wheels: tuple[Path, ...]

    @property
    def artifacts(self) -> tuple[tuple[str, str], ...]:
        """Name and sha256 of each wheel, sorted."""
        found = self.record["outputs"]
        return tuple(sorted((str(each["name"]), str(each["sha256"])) for each in found))


@dataclass(frozen=True)
class Standing:
    """All that was looked at; what a release is made of, where it is there."""

    checks: tuple[Check, ...]
    tree: str
    lock: RunnerLock
    gate: Gate
    built: Built | None
    profile: Profile | None

    @property
    def exit_code(self) -> int:
        """0; 6 where nothing but evidence is missing, else 5."""
        bad = [check.name for check in self.checks if not check.ok]
        if not bad:
            return 0
        return self.gate.exit_code if bad == ["gate"] and self.gate.exit_code else 5


def look_at(
    queue: Queue, gate: Gate, *, offline: bool = False, progress: Progress = SILENT
) -> Standing:
    """Look at everything that a release rests on. Raises PatchqError for what is malformed."""
    root = queue.project.root
    checks = [_committed(root), _decided(queue)]
    progress.step("proving the series")
    report = inspect.check(queue, offline=offline, progress=progress)
    bad = "; ".join(each.detail for each in report.proof.checks if not each.ok)
    checks.append(Check("series", not bad, bad or f"it gives {report.tree} on {report.base}"))
    state = queue.state
    wanted = Wanted(queue.config.name, state.release, state.tree, report.tree)
    locked = lockfacts.report(root, wanted, queue.series.applied, check=True)
    checks.append(_lock(locked))
    progress.step("hashing what was built")
    built, artifact = _artifact(root, gate, locked.lock.digest, report.tree)
    checks.append(artifact)
    checks.append(_gate(gate, locked.lock.digest, built))
    profile = None
    if gate.identity is not None:  # or the gate has said so
        profile, served = _profile(root, gate.identity)
        checks.append(served)
    return Standing(tuple(checks), report.tree, locked.lock, gate, built, profile)


def _committed(root: Path) -> Check:
    lines = tags.dirty(root, "build")
    told = ", ".join(show(line[3:]) for line in lines[:3])
    return Check(
        "commit",
        not lines,
        f"{len(lines)} changes are not committed: {told}" if lines else "all is committed",
    )


def _decided(queue: Queue) -> Check:
    found = list(_undecided(queue))
    return Check("queue", not found, "; ".join(found) or "nothing is held or open")


def _undecided(queue: Queue) -> Iterator[str]:
    for name in session.open_names(queue.project):
        yield f"a sync of {show(name)} waits for answers: `patchq sync --continue` or `--abort`"
    folders = [queue.folder]
    pins = lockfacts.pins_of(queue.project.root, queue.series.applied)
    folders += [queue.project.root / "series" / each.name for each in pins.components]
    for folder in folders:
        for name, why in serieses.read(folder).held.items():
            yield f"{name} is held ({show(why)}): `patchq unhold` or `patchq delete` it"
    seen = look(queue, edits=True)
    if seen is not None and seen.pending:
        yield f"{seen.pending} conflicts in the working tree: refresh or pop it"
    if seen is not None and seen.edits:
        yield f"{len(seen.edits)} edits in the working tree are in no patch: `patchq refresh`"


def _lock(report: lockfacts.LockReport) -> Check:
    if report.holds:
        return Check("lock", True, report.lock.digest)
    if not report.present:
        return Check("lock", False, "there is no upstream/runner.lock: run `patchq lock`")
    told = [f"{each.key} differs" for each in report.differing[:3]] + list(report.notes[:3])
    return Check("lock", False, f"it is of other inputs: {'; '.join(told)}")


def _artifact(root: Path, gate: Gate, lock: str, tree: str) -> tuple[Built | None, Check]:
    """The build whose wheels the evidence is about (or which is of this lock), verified."""
    wanted = gate.identity.artifacts if gate.identity is not None else None
    for target in TARGETS.values():
        folder = root / "build" / target.name
        try:
            record = json.loads((folder / RECORD).read_bytes())
            outputs = tuple(sorted((each["name"], each["sha256"]) for each in record["outputs"]))
            found = record["lock"] == lock if wanted is None else outputs == wanted
        except (OSError, ValueError, LookupError, TypeError):
            continue
        if found:
            return _verified(root, target, folder, record, lock, tree)
    what = "of this runner" if wanted is None else "with the wheels that the evidence is about"
    return None, Check("artifact", False, f"there is no build {what}: run `patchq build`")


def _verified(
    root: Path, target: Target, folder: Path, record: dict[str, Any], lock: str, tree: str
) -> tuple[Built | None, Check]:
    try:
        found = wheels_of(root, target)
    except PatchqError as error:
        return None, Check("artifact", False, f"{error.message}: {error.hint}")
    again = f"run `patchq build --target {target.name}` again"
    if record["lock"] != lock or record["runner"]["tree"] != tree:
        return None, Check("artifact", False, f"the build for {target.name} is of another: {again}")
    if found.requirements is None or record["requirements"] is None:
        why = f"its environment is not locked: `patchq lock --requirements {target.name}`"
        return None, Check("artifact", False, why)
    built = Built(target, folder, record, tuple(each.path for each in found.wheels))
    return built, Check("artifact", True, f"{len(built.wheels)} wheels for {target.name}")


def _gate(gate: Gate, lock: str, built: Built | None) -> Check:
    bad = [f"{each.rule}: {each.says}" for each in gate.findings if not each.ok]
    if not gate.passed:
        told = "; ".join(map(show, bad[:3])) or "no evidence"
        return Check("gate", False, f"it has not passed: {told}; see `patchq gate`")
    if gate.identity is None or gate.identity.lock != lock:
        return Check("gate", False, "it passed for another runner lock: smoke this one")
    if built is not None and gate.identity.artifacts != built.artifacts:
        return Check("gate", False, "it passed for other wheels: deploy and smoke these")
    return Check("gate", True, f"passed, {len(gate.evidence)} files of evidence")


def _profile(root: Path, identity: Identity) -> tuple[Profile | None, Check]:
    name = identity.profile
    try:
        found = profiles.load(root, name)
        data = (root / lockfacts.PROFILES / f"{name}.toml").read_bytes()
    except PatchqError as error:
        return None, Check("profile", False, error.message)
    if hashlib.sha256(data).hexdigest() != identity.profile_sha256:
        return None, Check("profile", False, f"{name} changed since the evidence was taken")
    return found, Check("profile", True, name)


def requirements_of(root: Path) -> dict[str, bytes]:
    """The locked requirements of every target that has some, by target."""
    paths = {name: root / lockfacts.UPSTREAM / file_name(name) for name in TARGETS}
    return {name: path.read_bytes() for name, path in paths.items() if path.is_file()}
