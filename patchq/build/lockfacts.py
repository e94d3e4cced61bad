"""What decides how a runner behaves, gathered from the project's files for its lock."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from patchq.build import lock as locks
from patchq.build import requirements
from patchq.build.lock import Difference, RunnerLock
from patchq.build.overlay import Wanted
from patchq.build.target import TARGETS
from patchq.errors import PatchqError, ProofFailed
from patchq.paths import show
from patchq.queue import series as serieses
from patchq.queue.patch import Patch
from patchq.upstream import components
from patchq.upstream.components import Pins

UPSTREAM = "upstream"
PROFILES = "ci/profiles"
NOTHING: Mapping[str, bytes] = MappingProxyType({})


@dataclass(frozen=True)
class LockReport:
    """The lock that the inputs give, and what it has otherwise than the file.

    `notes` are sentences about what it cannot bind: requirements that are not locked, or locked
    from other inputs. `checked`: it was only to be compared; `present`: there is such a file, and
    it is whole. `entry` is the journal's number, None where nothing was written.
    """

    queue: str
    lock: RunnerLock
    differing: tuple[Difference, ...]
    notes: tuple[str, ...]
    checked: bool
    present: bool
    entry: int | None = None

    @property
    def holds(self) -> bool:
        """Whether the file binds everything, as it is now."""
        return self.present and not self.differing and not self.notes

    @property
    def exit_code(self) -> int:
        return ProofFailed.exit_code if self.checked and not self.holds else 0


def report(
    root: Path,
    wanted: Wanted,
    patches: Sequence[Patch],
    *,
    check: bool,
    fresh: Mapping[str, bytes] = NOTHING,
) -> LockReport:
    """Compare what the project at `root` gives with its lock file.

    `fresh`: requirements locks that are about to be written, by target. A check raises PatchqError
    for a damaged lock; otherwise that one is replaced as if it was not there. Raises PatchqError
    for whatever else is malformed among the files.
    """
    pins = pins_of(root, patches)
    held = {**_requirements(root), **fresh}
    lock = gather(root, wanted, patches, pins, held)
    try:
        old = locks.read(root / UPSTREAM)
    except PatchqError:
        if check:
            raise
        old = None
    unbound = tuple(_unbound(held, wanted, pins, patched(root, pins)))
    differing = locks.differences(old, lock)
    return LockReport(wanted.series, lock, differing, unbound, check, old is not None)


def gather(
    root: Path,
    wanted: Wanted,
    patches: Sequence[Patch],
    pins: Pins,
    held: Mapping[str, bytes],
) -> RunnerLock:
    """The lock of what stands in the project at `root`; `held`: requirements locks by target."""
    facts: dict[str, str] = {
        "queue": wanted.series,
        "tree": wanted.tree,
        "base/release": wanted.release,
        "base/tree": wanted.base,
    }
    for patch in patches:
        facts[f"patch/{patch.name}"] = content_id(patch)
        facts |= _heads(patch)
    for component in pins.components:
        key = f"component/{component.name}"
        for what in ("index", "version", "git", "commit", "sha256"):
            if value := getattr(component, what):
                facts[f"{key}/{what}"] = value
        for patch in own_patches(root, component.name):
            facts[f"{key}/patch/{patch.name}"] = content_id(patch)
    for kind, entries in (
        ("model", pins.models),
        ("draft", pins.drafts),
        ("template", pins.templates),
    ):
        for entry in entries:
            for what in ("repository", "revision", "sha256", "file", "block_size"):
                if value := getattr(entry, what, None):
                    facts[f"{kind}/{entry.name}/{what}"] = str(value)
    facts |= {f"requirements/{target}": _sha256(data) for target, data in held.items()}
    for profile in sorted((root / PROFILES).glob("*.toml")):
        facts[f"profile/{profile.stem}"] = _sha256(profile.read_bytes())
    return locks.make(facts)


def own_patches(root: Path, component: str) -> tuple[Patch, ...]:
    """The patches that `series/COMPONENT/` applies; none where there is no such folder."""
    return serieses.read(root / "series" / component).applied


def pins_of(root: Path, patches: Sequence[Patch]) -> Pins:
    """`upstream/dependencies.toml`, with what carried patches set aside."""
    pins = components.pinned(root / UPSTREAM)
    carried = [
        *patches,
        *(each for part in pins.components for each in own_patches(root, part.name)),
    ]
    return replace(pins, relaxed=(*pins.relaxed, *requirements.relaxed_by(carried)))


def patched(root: Path, pins: Pins) -> frozenset[str]:
    """The names of the components that have patches of their own."""
    return frozenset(each.name for each in pins.components if own_patches(root, each.name))


def content_id(patch: Patch) -> str:
    """sha256 of what a patch changes: its reason may be put otherwise without another runner."""
    return _sha256(patch.diff)


def _heads(patch: Patch) -> Iterator[tuple[str, str]]:
    """The pull requests that the patch has taken in, and their heads."""
    for value in patch.header.all("Patchq-Pr"):
        name, _, head = value.partition(" @ ")
        if head:
            yield f"patch/{patch.name}/pr/{name.strip()}", head.strip()


def _requirements(root: Path) -> dict[str, bytes]:
    paths = {each: root / UPSTREAM / requirements.file_name(each) for each in TARGETS}
    return {target: path.read_bytes() for target, path in paths.items() if path.is_file()}


def _unbound(
    held: Mapping[str, bytes], wanted: Wanted, pins: Pins, own: Collection[str]
) -> Iterator[str]:
    if not pins.components:
        return
    for target in TARGETS.values():
        name = requirements.file_name(target.name)
        remedy = f"run `patchq lock --requirements {target.name}`"
        if target.name not in held:
            yield f"there is no upstream/{name}: {remedy}"
            continue
        found = requirements.parse(held[target.name], f"upstream/{name}")
        expected = requirements.told(target, wanted.release, pins, own)
        odd = sorted(set(expected) ^ set(found.told))
        if odd:
            yield f"upstream/{name} is of other inputs ({show(odd[0])}): {remedy}"


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
