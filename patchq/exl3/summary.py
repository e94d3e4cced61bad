"""What a plan says, counted: for people, for JSON, and for the runner's config."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from patchq.exl3.collector import aside
from patchq.exl3.model import Cut, Module, Plan, Refusal
from patchq.exl3.modules import EXPERT

LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.([0-9]+)\.")


@dataclass(frozen=True)
class Group:
    """Layers that are cut alike."""

    pattern: str
    count: int
    k: int
    n: int
    bits: int
    codebook: str
    cut: Cut | None
    why: str
    nbytes: int


@dataclass(frozen=True)
class Summary:
    """What `patchq slice plan` shows. Bytes are of tensor data, headers not counted."""

    root: str
    tp: int
    uneven: bool
    shards: int
    tensors: int
    single_file: bool
    symlinks: bool
    layers: int
    moe_layers: tuple[int, ...]
    experts: tuple[int, ...]
    """The different numbers of routed experts of a layer."""
    codebooks: tuple[tuple[str, int], ...]
    bits: tuple[tuple[int, int], ...]
    average_bits: float
    """Of the quantized weights."""
    dense: int
    """Quantized layers outside of routed experts."""
    routed: int
    fused: int
    packed_signs: int
    biases: int
    shared_vectors: int
    unquantized: int
    unquantized_bytes: int
    groups: tuple[Group, ...]
    bytes_source: int
    bytes_common: int
    """What every rank reads: tensors that stay as they are."""
    bytes_rank: tuple[int, ...]
    """What each rank has beside that."""
    refused: tuple[Refusal, ...]
    warnings: tuple[str, ...]

    @property
    def bytes_result(self) -> int:
        return self.bytes_common + sum(self.bytes_rank)


@dataclass(frozen=True)
class _Kind:
    """Layers that have everything in common but their place."""

    form: str
    module: Module
    """One of them."""
    count: int

    @property
    def weights(self) -> int:
        return self.count * self.module.k * self.module.n * (self.module.experts or 1)


@aside()
def summarize(plan: Plan) -> Summary:
    checkpoint = plan.checkpoint
    modules = plan.modules.values()
    kinds = _kinds(plan)
    weights = sum(kind.weights for kind in kinds)
    moved, ranks = _moved(plan, kinds)
    source = sum(shard.size - shard.data for shard in checkpoint.shards)
    routed = sum(kind.count for kind in kinds if _is_routed(kind.module))
    layers, experts = _experts(modules)
    return Summary(
        root=str(_source(plan)),
        tp=plan.tp,
        uneven=plan.uneven,
        shards=len(checkpoint.shards),
        tensors=len(checkpoint.tensors),
        single_file=not checkpoint.index,
        symlinks=any((checkpoint.root / shard.file).is_symlink() for shard in checkpoint.shards),
        layers=_layers((*plan.modules, *(tensor.name for tensor in plan.rest))),
        moe_layers=layers,
        experts=experts,
        codebooks=_counted((kind.module.codebook, kind.count) for kind in kinds),
        bits=_counted((kind.module.bits, kind.count) for kind in kinds),
        average_bits=sum(kind.weights * kind.module.bits for kind in kinds) / max(weights, 1),
        dense=len(plan.modules) - routed,
        routed=routed,
        fused=sum(kind.count for kind in kinds if kind.module.experts is not None),
        packed_signs=sum(kind.count for kind in kinds if {"su", "sv"} & set(kind.module.fields)),
        biases=sum(kind.count for kind in kinds if "bias" in kind.module.fields),
        shared_vectors=len(_shared(modules)),
        unquantized=len(plan.rest),
        unquantized_bytes=sum(tensor.nbytes for tensor in plan.rest),
        groups=_groups(plan, kinds),
        bytes_source=source,
        bytes_common=source - moved,
        bytes_rank=tuple(ranks),
        refused=plan.refused,
        warnings=plan.warnings,
    )


def _source(plan: Plan) -> Path:
    """What to name for this checkpoint again: a folder, or the one file that is not its whole."""
    checkpoint = plan.checkpoint
    file = checkpoint.shards[0].file if len(checkpoint.shards) == 1 else ""
    if checkpoint.index or not file or file == "model.safetensors":
        return checkpoint.root
    return checkpoint.root / file


def _kinds(plan: Plan) -> list[_Kind]:
    counts: dict[object, list[Any]] = {}
    for name, module in plan.modules.items():
        bias = module.fields.get("bias")
        form = plan.forms[name]
        key = (
            *(form, module.k, module.n, module.bits, module.codebook, module.experts),
            *(id(plan.cuts.get(name)), module.shared, tuple(module.fields), bias and bias.dtype),
        )
        found = counts.get(key)
        if found is None:
            counts[key] = [form, module, 1]
        else:
            found[2] += 1
    return [_Kind(*found) for found in counts.values()]


T = TypeVar("T", int, str)


def _counted(pairs: Iterable[tuple[T, int]]) -> tuple[tuple[T, int], ...]:
    found: dict[T, int] = {}
    for value, count in pairs:
        found[value] = found.get(value, 0) + count
    return tuple(sorted(found.items()))


def _shared(modules: Iterable[Module]) -> set[str]:
    return {module.fields[field].name for module in modules for field in module.shared}


def _moved(plan: Plan, kinds: Iterable[_Kind]) -> tuple[int, list[int]]:
    """Bytes that are cut or given to ranks, and what each rank has of them."""
    moved, ranks = 0, [0] * plan.tp
    if plan.refused:
        return moved, ranks
    tensors = [
        (kind.count, tensor.name)
        for kind in kinds
        for field, tensor in kind.module.fields.items()
        if field not in kind.module.shared
    ]
    tensors += [(1, name) for name in _shared(plan.modules.values())]
    for count, name in tensors:
        piece = plan.pieces.get(name)
        if piece is not None:
            moved += count * piece.source.nbytes
            for rank in range(plan.tp):
                ranks[rank] += count * piece.nbytes(rank)
    return moved, ranks


def _layers(names: Iterable[str]) -> int:
    return len({found[1] for name in names if (found := LAYER.search(name))})


def _is_routed(module: Module) -> bool:
    return module.experts is not None or EXPERT.fullmatch(module.name) is not None


def _experts(modules: Iterable[Module]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The layers that have routed experts, and the different numbers of them."""
    found: dict[str, set[str]] = {}
    fused: dict[str, int] = {}
    for module in modules:
        if module.experts is not None:
            fused[module.name.rpartition(".")[0]] = module.experts
            continue
        layer, experts, tail = module.name.partition(".experts.")
        if experts:
            found.setdefault(layer, set()).add(tail.partition(".")[0])
    counts = {name: len(each) for name, each in found.items()} | fused
    layers = {int(place[1]) for name in counts if (place := LAYER.search(f"{name}."))}
    return tuple(sorted(layers)), tuple(sorted(set(counts.values())))


def _groups(plan: Plan, kinds: Iterable[_Kind]) -> tuple[Group, ...]:
    groups = []
    for kind in kinds:
        module = kind.module
        groups.append(
            Group(
                kind.form,
                kind.count,
                module.k,
                module.n,
                module.bits,
                module.codebook,
                plan.cuts.get(module.name),
                plan.reasons.get(module.name, ""),
                kind.count * module.fields["trellis"].nbytes,
            )
        )
    return tuple(groups)
