"""What a project keeps beside its series that a build takes in: pins, locks, component patches."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from patchq.build import lockfacts, requirements
from patchq.build.components import Grow
from patchq.build.overlay import Wanted
from patchq.build.requirements import RequirementsLock
from patchq.build.target import Target
from patchq.queue.patch import Patch
from patchq.upstream.components import Component, Pins


@contextmanager
def grow_nothing(_component: Component) -> Iterator[None]:
    yield None


@dataclass(frozen=True)
class Given:
    """`lock` is the runner lock's digest, None where there is none or it is of other inputs.

    `requirements` is the target's lock with its sha256; `notes` are sentences about what is not
    bound, and why. `compiled`: the series' native code, by name in the wheel (None: not compiled).
    """

    pins: Pins = field(default_factory=Pins)
    lock: str | None = None
    requirements: RequirementsLock | None = None
    requirements_sha256: str = ""
    notes: tuple[str, ...] = ()
    grow: Grow = grow_nothing
    compiled: Mapping[str, Path] | None = None


def gather(
    root: Path, wanted: Wanted, target: Target, patches: Sequence[Patch], grow: Grow
) -> Given:
    """What stands in the project at `root`. Raises PatchqError for whatever is malformed there."""
    report = lockfacts.report(root, wanted, patches, check=True)
    notes: list[str] = []
    if not report.present:
        notes.append("there is no upstream/runner.lock: `patchq lock` writes it")
    elif report.differing:
        keys = ", ".join(each.key for each in report.differing[:3])
        notes.append(f"upstream/runner.lock is of other inputs ({keys}): run `patchq lock`")
    name = requirements.file_name(target.name)
    notes += [note for note in report.notes if f"upstream/{name}" in note]
    path = root / lockfacts.UPSTREAM / name
    locked, digest = None, ""
    if path.is_file():
        data = path.read_bytes()
        locked = requirements.parse(data, f"upstream/{name}")
        digest = hashlib.sha256(data).hexdigest()
    bound = report.present and not report.differing
    return Given(
        lockfacts.pins_of(root, patches),
        report.lock.digest if bound else None,
        locked,
        digest,
        tuple(notes),
        grow,
    )
