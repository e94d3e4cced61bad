"""Why a rank ended: what its last words mean. Pure.

Each row is a failure that was reported by those who run such clusters, or that vLLM, NCCL, gloo
and PyTorch are known to end with.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Cause:
    """`sign` is looked for in a line; `follows`: it is what the end of another rank looks like."""

    sign: re.Pattern[str]
    says: str
    remedy: str
    follows: bool = False


def _cause(sign: str, says: str, remedy: str, *, follows: bool = False) -> Cause:
    return Cause(re.compile(sign), says, remedy, follows)


CAUSES = (
    _cause(
        r"ibv_modify_qp.*(?:errno 61|No data available)",
        "the GID that NCCL took is empty or another's",
        "leave gid_index out of the cluster's file; see `patchq doctor --cluster`",
    ),
    _cause(
        r"ibv_modify_qp.*(?:errno 110|Connection timed out)",
        "RoCE packets do not arrive at the other node",
        "see to cable, addresses and frame size on both ends (`patchq doctor --cluster`)",
    ),
    _cause(
        r"[Ee]xec format error",
        "a program there is for another processor",
        "build for this machine (`patchq build --target`), then deploy again",
    ),
    _cause(
        r"no kernel image is available|ErrorInternal.*(?:cubin|PTX|kernel)",
        "the kernels were not compiled for this graphics processor",
        "build for the cluster's target, or name another node",
    ),
    _cause(
        r"[Aa]ddress already in use|EADDRINUSE",
        "a port was taken by somebody else",
        "see who has it (`patchq doctor --cluster`), or give the cluster other ports",
    ),
    _cause(
        r"NV_ERR_NO_MEMORY|CUDA out of memory|OutOfMemoryError|Cannot allocate memory"
        r"|No available memory for the cache blocks|Free memory on device .* is less than",
        "there is not enough memory",
        "stop what uses it there, or lower gpu-memory-utilization, max-model-len or max-num-seqs",
    ),
    _cause(
        r"killed due to memory pressure|ray.*OutOfMemory",
        "Ray's memory monitor killed the workers",
        "set RAY_memory_monitor_refresh_ms=0, or use the mp backend as patchq does",
    ),
    _cause(r"\bXid\b.*\b\d+", "the graphics processor reported an error", "see `dmesg` there"),
    _cause(
        r"illegal memory access|device-side assert",
        "a kernel read or wrote where it must not",
        "note at which length of prompt; run with CUDA_LAUNCH_BLOCKING=1 to learn which kernel",
    ),
    _cause(
        r"\b0/\d+ shards|Cannot find any model weights",
        "no shard of the model was found",
        "see that the model's folder there is whole and its links lead somewhere",
    ),
    _cause(
        r"unrecognized arguments|invalid choice|expected (?:one|at least one) argument",
        "the runner does not know a flag of the profile, or its value",
        "correct [flags] in ci/profiles, or deploy the runner that the profile is for",
    ),
    _cause(
        r"undefined symbol|cannot open shared object file|ImportError: .*\.so",
        "a shared object does not fit its environment",
        "deploy again, so that wheel and locked requirements belong together",
    ),
    _cause(
        r"ModuleNotFoundError: No module named",
        "a package is missing in its environment",
        "deploy again; where the cluster's file names a `python`, install it there",
    ),
    _cause(
        r"No space left on device",
        "a disk, or /dev/shm, is full",
        "make room there (`df -h`, `df -h /dev/shm`)",
    ),
    _cause(
        r"RPC call to \w+ timed out",
        "another rank did not answer for minutes",
        "look at the other ranks' last lines: one of them froze",
        follows=True,
    ),
    _cause(
        r"client socket has timed out|DistNetworkError|DistStoreError|TCPStore.*timed out"
        r"|wait timeout after",
        "the ranks did not find each other",
        "see that rank 0's address and master_port are reached from the other node",
        follows=True,
    ),
    _cause(
        r"[Cc]onnection (?:closed|reset) by peer|Broken pipe|NCCL.*remote process exited",
        "another rank went away",
        "look at the other ranks' last lines",
        follows=True,
    ),
)
KILLED = Cause(
    re.compile(""),
    "it was killed, as the system does where memory runs out",
    "see `dmesg` there; stop what uses memory, or give the profile less",
)


def cause(lines: Sequence[str], code: int) -> Cause | None:
    """The cause that a rank's last lines name, the last word first; `code` is its exit code.

    What merely follows from another rank's end counts where nothing else is found.
    """
    found = [each for line in reversed(lines) for each in CAUSES if each.sign.search(line)]
    own = [each for each in found if not each.follows]
    if own:
        return own[0]
    if code == 128 + 9:
        return KILLED
    return found[0] if found else None


def first_of(causes: Iterable[tuple[int, Cause | None]]) -> tuple[int, Cause | None] | None:
    """Of several ranks that ended (number, cause): the one whose end the others followed."""
    order = sorted(
        causes, key=lambda each: (each[1] is None, each[1] is not None and each[1].follows, each[0])
    )
    return order[0] if order else None
