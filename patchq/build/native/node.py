"""What a node compiles with, and how much of it at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from patchq.cluster.shell import Shell
from patchq.errors import PatchqError

GIB = 1 << 20
"""In the kB of /proc/meminfo."""
JOB = 8
"""GiB that are reckoned for one compiler job; CUTLASS sources take the most."""
KEPT = 8
"""GiB that are left to the node itself. On GB10 the GPU's memory is the same memory."""
_TORCH = "import torch, torch.utils.cpp_extension as e; print(*e.include_paths(), sep='\\n')"
_PYTHON = "import sysconfig; print(sysconfig.get_path('include'))"
_CACHES = ("sccache", "ccache")
_ASKED = 60.0


@dataclass(frozen=True)
class Tools:
    """Programs as they are called on the node. `includes` None: torch is asked for its own."""

    nvcc: str = "nvcc"
    cxx: str = "c++"
    cmake: str = "cmake"
    python: str = "python3"
    includes: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Node:
    """What was found on a node. `cuda` is nvcc's version, `cache` the compiler cache (or none);
    `memory` is what is available, in GiB.
    """

    machine: str
    cores: int
    memory: float
    cuda: str
    cache: str
    includes: tuple[str, ...]

    @property
    def jobs(self) -> int:
        return jobs(self.cores, self.memory)


def jobs(cores: int, memory: float) -> int:
    """How many compilers run at once: one a core, while there are 8 GiB for each beyond the 8 GiB
    that the node keeps; at least one.
    """
    return max(1, min(cores, int((memory - KEPT) // JOB)))


def look(shell: Shell, tools: Tools, *, cuda: bool = True) -> Node:
    """Ask the node. Raises PatchqError where CUDA is needed and it has no nvcc, Incomplete where it
    is not reached.
    """
    said = _say(shell, [tools.nvcc, "--version"]) if cuda else ""
    release = re.search(r"release (\d+\.\d+)", said)
    if cuda and not release:
        raise PatchqError(
            f"{shell.name} has no nvcc that works ({tools.nvcc})",
            "install the CUDA toolkit there, of the version that torch was built with",
        )
    includes = tools.includes if tools.includes is not None else _torch(shell, tools.python)
    if cuda and tools.includes is None and not includes:
        raise PatchqError(
            f"{shell.name} has no torch for {tools.python}",
            "install there what requirements/build/cuda.txt of the release names",
        )
    memory = re.search(r"MemAvailable:\s*(\d+)", _say(shell, ["cat", "/proc/meminfo"]))
    cores = _say(shell, ["nproc"])
    caches = [each for each in _CACHES if _say(shell, [each, "--version"])]
    return Node(
        _say(shell, ["uname", "-m"]),
        int(cores) if cores.isdecimal() else 1,
        int(memory[1]) / GIB if memory else 0.0,
        release[1] if release else "",
        caches[0] if caches else "",
        includes,
    )


def _torch(shell: Shell, python: str) -> tuple[str, ...]:
    """Where torch's headers and Python's are: what torch's own build of extensions adds."""
    found = _say(shell, [python, "-c", _TORCH]).splitlines()
    own = _say(shell, [python, "-c", _PYTHON])
    return (*found, own) if found and own else ()


def _say(shell: Shell, args: Sequence[str]) -> str:
    done = shell.run(args, timeout=_ASKED)
    return done.stdout.decode("utf-8", "replace").strip() if done.code == 0 else ""
