"""A build as a value: what its records are made of."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from patchq.build.components import Part
from patchq.build.overlay import Built, Wanted
from patchq.build.requirements import RequirementsLock, Rewritten
from patchq.build.target import Target
from patchq.queue.patch import Patch
from patchq.upstream.pages import Dist

RECORD = "build.json"


@dataclass(frozen=True)
class Made:
    """A build, whole: what went in, what was decided, what came out.

    `lock` is the runner lock's digest, `requirements` the target's lock with its sha256; None where
    the project has none. `licence` is what upstream's wheel says of itself.
    """

    wanted: Wanted
    target: Target
    patches: Sequence[Patch]
    source: Dist
    built: Built
    parts: tuple[Part, ...] = ()
    rewritten: tuple[Rewritten, ...] = ()
    lock: str | None = None
    requirements: RequirementsLock | None = None
    requirements_sha256: str = ""
    licence: str = ""

    @property
    def outputs(self) -> tuple[tuple[str, str, int], ...]:
        """Name, sha256 and size in bytes of each wheel that was made, the runner's first."""
        wheels = [part.wheel for part in self.parts if part.wheel is not None]
        own = (self.built.path.name, self.built.sha256, self.built.size)
        return (own, *((each.path.name, each.sha256, each.size) for each in wheels))


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
