"""`patchq gate`: reads the runner in question, its rules and its evidence, and has them judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from patchq.build import deployable, target
from patchq.build import lock as locks
from patchq.build.lock import RunnerLock
from patchq.cluster import config as clusters
from patchq.cluster import profile as profiles
from patchq.cluster.profile import Profile
from patchq.config import Project
from patchq.errors import PatchqError
from patchq.smoke import evidence, gate_forms, gate_rules, kept, released
from patchq.smoke.catalog import PROBES
from patchq.smoke.evidence import KINDS, Kind
from patchq.smoke.gate_judge import judge
from patchq.smoke.gate_model import Before, Expected, Found, Gate, Pinned
from patchq.smoke.gate_rules import Rules
from patchq.smoke.released import Released


@dataclass(frozen=True)
class Examined:
    """How the gate decided, by which rules, on what."""

    gate: Gate
    rules: Rules
    expected: Expected
    found: Found


def decide(project: Project, runner: str | None = None) -> Gate:
    """Whether the evidence of `runner` suffices: the start of a runner lock's digest, a release's
    number, or (None) what is built now.

    Raises PatchqError where there is no such runner, no rules, or a file of theirs is malformed.
    """
    return examine(project, runner).gate


def examine(
    project: Project,
    runner: str | None = None,
    folder: Path | None = None,
    now: datetime | None = None,
) -> Examined:
    """As `decide`; `folder`: where the evidence lies, in the place of the project's own."""
    root = project.root
    probes = tuple(probe.name for probe in PROBES)
    rules = gate_rules.load(root, probes)
    number = released.named(root, runner)
    release = released.read(root, number) if number is not None else None
    lock = release.lock if release else locks.find(root, runner)
    if folder is not None and not folder.is_dir():
        raise PatchqError(f"there is no folder {folder}", "name one that holds evidence")
    expected = _expected(root, rules, lock, release, probes)
    found = gather(folder or evidence.folder(root, lock.digest))
    gate = judge(rules, expected, found, now or datetime.now(UTC))
    return Examined(gate, rules, expected, found)


def gather(folder: Path) -> Found:
    """The evidence that lies there. Nothing of it is believed yet."""
    there: dict[Kind, evidence.Kept] = {}
    damaged: dict[Kind, str] = {}
    found = Found(there, damaged=damaged)
    for kind in KINDS:
        try:
            entry = evidence.load(folder, kind)
            if entry is None:
                if (folder / f"{kind}.partial.json").is_file():
                    damaged[kind] = f"{kind}.partial.json is of a run that was not finished"
                continue
            if kind == "smoke":
                found = replace(found, smoke=gate_forms.smoked(entry.value))
            elif kind == "bench":
                found = replace(found, bench=kept.read(entry.path))
            else:
                found = replace(found, compare=gate_forms.compared(entry.value))
            there[kind] = entry
        except PatchqError as error:
            damaged[kind] = error.message
        except ValueError as error:
            damaged[kind] = f"{kind}.json is of no form that is known: {error}"
    return found


def _expected(
    root: Path, rules: Rules, lock: RunnerLock, release: Released | None, probes: tuple[str, ...]
) -> Expected:
    cluster = clusters.load(root, rules.cluster)
    machine = target.find(cluster.target)
    artifacts, why_not = _wheels(root, lock, release, machine)
    profile = _profile(root, rules.profile, lock)
    return Expected(
        lock=lock.digest,
        tree=_fact(lock, "tree"),
        profile_sha256=lock.get(f"profile/{rules.profile}"),
        artifacts=artifacts,
        nodes=tuple(node.name for node in cluster.nodes),
        machine=machine.machine,
        probes=probes,
        why_not=why_not,
        pinned=_pinned(profile, lock) if profile else {},
        drafts=profile is None or bool(profile.speculation),
        release=release.number if release else None,
        last=_last(root, lock, release),
    )


def _wheels(
    root: Path, lock: RunnerLock, release: Released | None, machine: target.Target
) -> tuple[tuple[tuple[str, str], ...] | None, str]:
    """The runner's wheels for its target, or why they are not known."""
    if release is not None and machine.name in release.wheels:
        return release.wheels[machine.name], ""
    try:
        bundle = deployable.bundle(root, machine)
    except PatchqError as error:
        return None, f"{error.message}; run `patchq build --target {machine.name}`"
    built = bundle.labels.get("lock")
    if built != lock.digest:
        of = f"the runner {built[:16]}" if built else "a runner without a lock"
        return None, (
            f"the build in build/{machine.name} is of {of}, not {lock.digest[:16]};"
            f" run `patchq build --target {machine.name}`"
        )
    return tuple(sorted((each.path.name, each.sha256) for each in bundle.wheels)), ""


def _profile(root: Path, name: str, lock: RunnerLock) -> Profile | None:
    """None where its file is not the one that the lock has."""
    profile = profiles.load(root, name)
    digest = profiles.identity(root, profile)["profile_sha256"]
    return profile if digest == lock.get(f"profile/{name}") else None


def _pinned(profile: Profile, lock: RunnerLock) -> Mapping[str, Pinned]:
    """What the profile serves."""
    template = lock.get(f"template/{profile.template}/sha256") if profile.template else None
    return {
        "model": Pinned(True),
        "draft": Pinned(profile.draft is not None),
        "template": Pinned(profile.template is not None, template),
    }


def _last(root: Path, lock: RunnerLock, release: Released | None) -> Before | None:
    """The release before this runner: the newest that is another, or is older than it.

    One that was withdrawn is nothing to be as good as.
    """
    bad = released.withdrawn(root)
    for number in reversed(released.numbers(root)):
        if number in bad or (release is not None and number >= release.number):
            continue
        found = released.read(root, number)
        if found.lock.digest != lock.digest:
            return Before(number, found.lock.digest, found.tree, found.figures)
    return None


def _fact(lock: RunnerLock, key: str) -> str:
    value = lock.get(key)
    if value is None:
        raise PatchqError(
            f"the runner lock has no {key}", "run `patchq lock`, which writes it anew"
        )
    return value
