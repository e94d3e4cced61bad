"""What headers do not show: values of markers and scales, checked before anything is written."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from patchq.exl3.headers import BadFile
from patchq.exl3.model import MARKERS, Plan, Refusal, Tensor
from patchq.progress import SILENT, Progress

GAP = 64 << 10
"""Tensors that lie closer are read at once."""
LIMIT = 8 << 20

# The upper byte of a float16: where all five exponent bits are set it is infinite or no number.
_FINITE = bytes(byte for byte in range(256) if byte & 0x7C != 0x7C)


class _Wanted(NamedTuple):
    tensor: Tensor
    marker: int | None
    """The value it must have; None: a scale."""


def check(plan: Plan, progress: Progress = SILENT) -> list[Refusal]:
    """Every marker has its codebook's value, every scale is finite. Reads nothing else."""
    wanted: dict[str, dict[str, _Wanted]] = defaultdict(dict)
    for module in plan.modules.values():
        for name, tensor in module.fields.items():
            if name in MARKERS or name in ("suh", "svh"):
                wanted[tensor.file][tensor.name] = _Wanted(tensor, MARKERS.get(name))
    problems: list[Refusal] = []
    for done, shard in enumerate(plan.checkpoint.shards):
        progress.step("checking markers and scales", done, len(plan.checkpoint.shards), "shards")
        if shard.file in wanted:
            descriptor = os.open(shard.path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                problems += _check_file(descriptor, wanted[shard.file].values())
            finally:
                os.close(descriptor)
    return problems


def _check_file(descriptor: int, wanted: Iterable[_Wanted]) -> Iterator[Refusal]:
    for group in _together(sorted(wanted, key=lambda each: each.tensor.start)):
        start = group[0].tensor.start
        data = os.pread(descriptor, group[-1].tensor.end - start, start)
        for tensor, marker in group:
            part = data[tensor.start - start : tensor.end - start]
            if len(part) < tensor.nbytes:
                raise BadFile(f"{tensor.file} changed while it was read", "run it again")
            problem = _marker(part, marker) if marker is not None else _scale(part)
            if problem:
                yield Refusal(tensor.name, problem, "download the checkpoint again")


def _together(wanted: list[_Wanted]) -> Iterator[list[_Wanted]]:
    group: list[_Wanted] = []
    for each in wanted:
        if group and (
            each.tensor.start - group[-1].tensor.end > GAP
            or each.tensor.end - group[0].tensor.start > LIMIT
        ):
            yield group
            group = []
        group.append(each)
    if group:
        yield group


def _marker(data: bytes, value: int) -> str:
    wanted = value.to_bytes(4, "little")
    for place in range(0, len(data), 4):
        if data[place : place + 4] != wanted:
            found = int.from_bytes(data[place : place + 4], "little")
            return f"its value is {found:#010x}, its codebook's is {value:#010x}"
    return ""


def _scale(data: bytes) -> str:
    upper = data[1::2]
    if not upper.translate(None, _FINITE):
        return ""
    place = next(place for place, byte in enumerate(upper) if byte & 0x7C == 0x7C)
    value = int.from_bytes(data[2 * place : 2 * place + 2], "little")
    kind = "NaN" if value & 0x3FF else "infinite"
    return f"its value {place} is {kind} ({value:#06x})"
