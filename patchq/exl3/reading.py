"""The tensors of a sliced checkpoint read once: hashed, compared, their small values checked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from patchq.exl3.compare import Stored, compare, digest
from patchq.exl3.model import MARKERS, Cut, Module, Range, Tensor
from patchq.exl3.sliced import Sliced, split_name

BATCH = 32 << 20
"""Bytes that a thread takes at a time."""


@dataclass(frozen=True, eq=False)
class Job:
    """What became of one tensor of the source (None: it is not at hand), to be read."""

    slices: tuple[Stored | None, ...]
    source: Stored | None = None
    axis: int | None = None
    ranges: Sequence[Sequence[Range]] = ()

    @property
    def nbytes(self) -> int:
        """About as many bytes as are read for it."""
        stored = [*self.slices, self.source]
        return sum(each.tensor.nbytes for each in stored if each is not None)


@dataclass
class Result:
    """`digests`: SHA-256 of each tensor of the result. The others: a sentence for each problem."""

    digests: dict[str, bytes] = field(default_factory=dict)
    different: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def batches(jobs: Iterable[Job]) -> Iterator[list[Job]]:
    """Jobs in their order, some BATCH bytes together."""
    batch: list[Job] = []
    size = 0
    for job in jobs:
        batch.append(job)
        size += job.nbytes
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def read(batch: Iterable[Job]) -> Result:
    result = Result()
    for job in batch:
        digests: Sequence[bytes | None]
        if job.source is None:
            digests = [digest(each) if each is not None else None for each in job.slices]
        else:
            compared = compare(job.source, job.slices, job.axis, job.ranges)
            digests = compared.digests
            if compared.different:
                result.different.append(compared.different)
        for stored, found in zip(job.slices, digests, strict=True):
            if stored is not None and found is not None:
                result.digests[stored.tensor.name] = found
                wrong = _wrong_value(stored)
                if wrong:
                    result.wrong.append(f"{stored.tensor.name}: {wrong}")
    return result


def _wrong_value(stored: Stored) -> str:
    """What is wrong with a marker or a scale."""
    tensor = stored.tensor
    kind = tensor.name.rpartition(".")[2]
    if kind in MARKERS:
        values = stored.reader.read(tensor, 0, tensor.nbytes).view("<u4")
        bad = values[values != MARKERS[kind]]
        return f"its value is {int(bad[0]):#010x}, not {MARKERS[kind]:#010x}" if bad.size else ""
    if kind in ("suh", "svh"):
        scale = stored.reader.read(tensor, 0, tensor.nbytes).view("<f2")
        places = np.flatnonzero(~np.isfinite(scale))
        return f"its value {places[0]} is {scale[places[0]]}" if places.size else ""
    return ""


def unlike(
    own: Mapping[int, Mapping[str, Module]], cuts: Mapping[str, Cut], digests: Mapping[str, bytes]
) -> Iterator[str]:
    """Vectors that every rank has in whole but that are not the same on all of them."""
    first, *others = own
    for name, cut in cuts.items():
        copied = {"column": ("suh", "su"), "row": ("svh", "sv"), "whole": ()}[cut.split]
        for kind in copied:
            reference = own[first][name].fields.get(kind)
            if reference is None:
                continue
            wanted = digests[_stored_name(reference, first)]
            for rank in others:
                stored = _stored_name(own[rank][name].fields[kind], rank)
                if digests[stored] != wanted:
                    yield f"{stored} is not what rank {first} has"


def _stored_name(tensor: Tensor, rank: int) -> str:
    """The name in the result of a tensor of a rank's view."""
    module, _, kind = tensor.name.rpartition(".")
    return f"{module}.rank{rank}.{kind}"


def rank_digests(sliced: Sliced, digests: Mapping[str, bytes]) -> dict[int, str]:
    """SHA-256 in hex for each rank, over what it reads: its own tensors and those of all."""
    hashers = {rank: hashlib.sha256() for rank in sliced.ranks}
    for name in sorted(digests):
        tensor = sliced.checkpoint.tensors[name]
        shape = ",".join(map(str, tensor.shape))
        line = f"{name}\0{tensor.dtype}\0{shape}\0{digests[name].hex()}\n".encode()
        owner = split_name(name)[1]
        for rank in sliced.ranks if owner is None else (owner,):
            hashers[rank].update(line)
    return {rank: hasher.hexdigest() for rank, hasher in hashers.items()}
