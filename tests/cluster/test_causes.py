"""What a rank's last words mean: each cause by a line as programs write it."""

from __future__ import annotations

import pytest

from patchq.cluster.causes import CAUSES, KILLED, cause, first_of

LINES = {
    "misc/ibvwrap.cc:198 NCCL WARN Call to ibv_modify_qp failed with error No data available errno 61": "the GID that NCCL took",
    "NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_0:1": "RoCE packets do not arrive",
    "exec /usr/bin/python3: exec format error": "for another processor",
    "RuntimeError: CUDA error: no kernel image is available for execution on the device": "not compiled for this",
    "OSError: [Errno 98] error while attempting to bind on address ('0.0.0.0', 8888): address already in use": "a port was taken",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.": "not enough memory",
    "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`": "not enough memory",
    "NVRM: nvAssertOkFailedNoLog: Assertion failed: Out of memory [NV_ERR_NO_MEMORY]": "not enough memory",
    "2 Workers (tasks / actors) killed due to memory pressure (OOM)": "Ray's memory monitor",
    "NVRM: Xid (PCI:0000:01:00): 31, pid=4711, name=VLLM::Worker": "reported an error",
    "torch.AcceleratorError: CUDA error: an illegal memory access was encountered": "a kernel read or wrote",
    "Loading safetensors checkpoint shards: 0/120 shards": "no shard of the model",
    "vllm: error: unrecognized arguments: --progress-timeout 120": "does not know a flag",
    "ImportError: /x/_C.abi3.so: undefined symbol: _ZN3c104cuda9SetDeviceEa": "does not fit its environment",
    "ModuleNotFoundError: No module named 'flashinfer'": "a package is missing",
    "OSError: [Errno 28] No space left on device: '/psm_1234'": "/dev/shm, is full",
    "TimeoutError: RPC call to sample_tokens timed out.": "another rank did not answer",
    "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms": "did not find each other",
    "RuntimeError: [../gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.77.0.2]:4711": "another rank went away",
}


@pytest.mark.parametrize("line", LINES)
def test_a_line_names_its_cause(line: str) -> None:
    found = cause(["INFO nothing", line, "Traceback ends"], 1)
    assert found is not None and LINES[line] in found.says
    assert found.remedy


def test_every_cause_has_a_line() -> None:
    assert {cause([line], 1) for line in LINES} == set(CAUSES)


def test_what_follows_another_end_counts_last() -> None:
    own, other = "CUDA out of memory", "Connection reset by peer"
    found = cause([own, other], 1)
    assert found is not None and "not enough memory" in found.says
    follows = cause([other], 1)
    assert follows is not None and follows.follows
    assert first_of([(0, follows), (1, found)]) == (1, found)
    assert first_of([(0, None), (1, follows)]) == (1, follows)


def test_a_rank_that_is_killed_without_a_word() -> None:
    assert cause(["INFO loading"], 137) is KILLED
    assert cause(["Connection reset by peer"], 137) is KILLED
    assert cause(["INFO loading"], 1) is None
    assert first_of([]) is None
