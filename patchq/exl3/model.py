"""What everything in this room speaks of: tensors, quantized layers, and how they are cut.

An EXL3 layer `NAME` holds a weight W of shape [K, N] = [in_features, out_features] as the fields
`trellis` (int16 [K/16, N/16, 16*bits]), `suh` (float16 [K]) or packed `su` (int16 [K/16]), `svh`
(float16 [N]) or packed `sv` (int16 [N/16]), at most one marker `mcg` or `mul1` (int32, one
value; neither: the default codebook, "3inst") and perhaps `bias` ([N]). Fused experts stack
all of that along one axis in front. Where experts share a Hadamard vector, it is stored once,
as `...experts.shared_h.PROJECTION.suh` (or `.svh`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

BLOCK = 128
"""Width of a Hadamard block: a cut inside of one does not decode."""
TILE = 16
"""Width of a trellis tile."""

MARKERS: Mapping[str, int] = {"mcg": 0xCBAC1FED, "mul1": 0x83DCD12D}
"""The codebooks that a marker names, with its value as uint32."""
DEFAULT_CODEBOOK = "3inst"
FIELDS = ("trellis", "suh", "su", "svh", "sv", "mcg", "mul1", "bias")

Split = Literal["column", "row", "whole"]
"""By output features, by input features, or not at all (every rank reads the same tensors)."""


class Tensor(NamedTuple):
    """One entry of a safetensors header. `start` and `end` are absolute offsets in the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    file: str
    start: int
    end: int

    @property
    def nbytes(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class Shard:
    """A safetensors file whose header was checked: its tensors cover its data, end to end."""

    file: str
    """Its name in the checkpoint's folder."""
    path: Path
    """Where its bytes are: symlinks (a Hugging Face snapshot) are followed."""
    size: int
    data: int
    """Offset of the first data byte: 8 + the header's length."""
    metadata: Mapping[str, str]
    tensors: tuple[Tensor, ...]
    """In the order of their bytes."""
    header_sha256: str


@dataclass(frozen=True)
class Checkpoint:
    """What the headers and JSON files of a folder say. No tensor data was read."""

    root: Path
    shards: tuple[Shard, ...]
    tensors: Mapping[str, Tensor]
    config: Mapping[str, Any]
    """config.json, or {}."""
    quantization: Mapping[str, Any]
    """quantization_config.json, else config.json's `quantization_config`, else {}."""
    index: bool
    """Whether there is a model.safetensors.index.json."""
    others: tuple[str, ...]
    """The remaining files (tokenizer, template, ...), relative to the folder."""

    def shard(self, file: str) -> Shard:
        return next(shard for shard in self.shards if shard.file == file)


@dataclass(frozen=True)
class Module:
    """One quantized layer W [k, n], or `experts` of them stacked (fused experts; None: one)."""

    name: str
    k: int
    n: int
    bits: int
    codebook: str
    """mcg, mul1 or 3inst."""
    fields: Mapping[str, Tensor]
    """Keys of FIELDS; a Hadamard vector shared by experts stands here as well."""
    shared: frozenset[str] = frozenset()
    """Fields that are stored under `experts.shared_h`, not under `name`."""
    experts: int | None = None

    def sized(self, k: int, n: int) -> Module:
        """The same layer of another size (dataclasses.replace takes twice as long)."""
        rest = (self.bits, self.codebook, self.fields, self.shared, self.experts)
        return Module(self.name, k, n, *rest)

    @property
    def input_scale(self) -> Tensor:
        return self.fields["suh"] if "suh" in self.fields else self.fields["su"]

    @property
    def output_scale(self) -> Tensor:
        return self.fields["svh"] if "svh" in self.fields else self.fields["sv"]


Range = tuple[int, int]


@dataclass(frozen=True)
class Cut:
    """Which features of a layer each rank holds.

    `ranges[rank]` lists [start, stop) along the split axis in features (N for column, K for row),
    each a multiple of 128; a layer fused of several parts (gate_up, qkv) has one range per
    part, laid one behind the other in the rank's tensor. Ranks may hold the same range (key and
    value heads that are fewer than the ranks).
    """

    split: Split
    ranges: tuple[tuple[Range, ...], ...] = ()

    @cached_property
    def scaled(self) -> Mapping[int, tuple[tuple[Range, ...], ...]]:
        """The ranges in features (1) and in tiles (16)."""
        tiles = tuple(
            tuple((start // TILE, stop // TILE) for start, stop in each) for each in self.ranges
        )
        return {1: self.ranges, TILE: tiles}

    def width(self, rank: int) -> int:
        return sum(stop - start for start, stop in self.ranges[rank])


@dataclass(frozen=True)
class Piece:
    """How one tensor of the source becomes tensors of the result.

    `targets[rank]` is the name for that rank, None where the rank gets none (the bias of a layer
    that is split by input goes to rank 0). `axis` is None for a copy, else the axis of the
    source tensor that is cut, and `ranges[rank]` the [start, stop) along it in its own elements.
    A tensor that stays as it is has no Piece.
    """

    source: Tensor
    targets: tuple[str | None, ...]
    axis: int | None = None
    ranges: tuple[tuple[Range, ...], ...] = ()

    def shape(self, rank: int) -> tuple[int, ...]:
        shape = self.source.shape
        if self.axis is None:
            return shape
        width = sum(stop - start for start, stop in self.ranges[rank])
        return (*shape[: self.axis], width, *shape[self.axis + 1 :])

    def nbytes(self, rank: int) -> int:
        if self.targets[rank] is None:
            return 0
        if self.axis is None:
            return self.source.nbytes
        width = sum(stop - start for start, stop in self.ranges[rank])
        return self.source.nbytes // self.source.shape[self.axis] * width


@dataclass(frozen=True)
class Refusal:
    """Why a checkpoint is not cut: one sentence, with the tensor and the numbers."""

    tensor: str
    why: str
    hint: str = ""


@dataclass(frozen=True)
class Plan:
    """How `checkpoint` is cut for `tp` ranks. It can be carried out if nothing is refused."""

    checkpoint: Checkpoint
    tp: int
    uneven: bool
    modules: Mapping[str, Module]
    cuts: Mapping[str, Cut]
    """By module name."""
    reasons: Mapping[str, str]
    """By module name: which rule cut it."""
    pieces: Mapping[str, Piece]
    """By source tensor name; what is not here stays as it is."""
    refused: tuple[Refusal, ...] = ()
    warnings: tuple[str, ...] = ()
    forms: Mapping[str, str] = field(default_factory=dict)
    """By module name: the name with every number as `*`."""
    rest: tuple[Tensor, ...] = ()
    """The tensors of no quantized layer."""


def target_name(module: str, rank: int, name: str) -> str:
    """`NAME.rankR.FIELD`, in both layouts."""
    return f"{module}.rank{rank}.{name}"
