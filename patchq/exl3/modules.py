"""The quantized layers of a checkpoint, put together from its tensors' names and checked."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from patchq.exl3.families import number
from patchq.exl3.model import (
    BLOCK,
    DEFAULT_CODEBOOK,
    FIELDS,
    MARKERS,
    TILE,
    Checkpoint,
    Module,
    Refusal,
    Tensor,
)

EXPERT = re.compile(r"(.*\.experts)\.([0-9]{1,6}|shared_h)\.(.+)")
SLICED = re.compile(r"(.+)\.rank([0-9]{1,4})")
EXPERT_COUNTS = ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")
SHARED = "shared_h"
_KNOWN = frozenset(FIELDS)
_ONLY_EXL3 = _KNOWN - {"bias"}
_SCALE = ("F16",)
_TYPES = {
    "trellis": ("I16",),
    "suh": _SCALE,
    "svh": _SCALE,
    "su": ("I16",),
    "sv": ("I16",),
    "mcg": ("I32",),
    "mul1": ("I32",),
    "bias": ("F16", "F32"),
}


class Wrong(Exception):
    """What is wrong with one layer."""

    def __init__(self, tensor: str, why: str) -> None:
        super().__init__(why)
        self.tensor = tensor


@dataclass(frozen=True)
class Found:
    """`modules` by name; `shared`: the `experts.shared_h` groups; `refused`: what is wrong."""

    modules: Mapping[str, Module]
    shared: Mapping[str, Mapping[str, Tensor]]
    rest: tuple[Tensor, ...]
    """The tensors of no EXL3 layer."""
    refused: tuple[Refusal, ...]


def find(checkpoint: Checkpoint) -> Found:
    """All EXL3 layers. What is damaged or incomplete is refused, the rest is still found."""
    groups, rest = _groups(checkpoint.tensors.values())
    refused = _already_sliced(groups)
    if refused:
        return Found({}, {}, rest, refused)
    shared = {name: fields for name, fields in groups.items() if f".experts.{SHARED}." in name}
    modules = {}
    problems = []
    known: dict[Any, _Form] = {}
    for name, fields in groups.items():
        if name in shared:
            continue
        try:
            borrowed = _borrow(name, fields, shared) if shared else _NOTHING
            likeness = (
                *[(field, tensor[1], tensor[2]) for field, tensor in fields.items()],
                *[tensor[0] for tensor in borrowed.values()],
            )
            form = known.get(likeness)
            if form is None:
                form = known[likeness] = _check(name, fields, borrowed)
            everything = fields | borrowed if borrowed else fields
            k, n, bits, codebook, experts = form
            modules[name] = Module(
                name, k, n, bits, codebook, everything, frozenset(borrowed), experts
            )
        except Wrong as wrong:
            problems.append(Refusal(wrong.tensor, str(wrong), "download the checkpoint again"))
    problems += _unused(shared, modules)
    if not modules and not problems:
        problems.append(Refusal("", "it holds no EXL3 layer (no tensor NAME.trellis)"))
    problems += _experts(checkpoint.config, groups, rest)
    return Found(modules, shared, rest, tuple(problems))


class _Form(NamedTuple):
    """What layers with the same fields, dtypes and shapes have in common."""

    k: int
    n: int
    bits: int
    codebook: str
    experts: int | None


_NOTHING: dict[str, Tensor] = {}


def _groups(tensors: Iterable[Tensor]) -> tuple[dict[str, dict[str, Tensor]], tuple[Tensor, ...]]:
    """Tensors that only EXL3 has, by layer, with the bias beside them; and all the others."""
    groups: dict[str, dict[str, Tensor]] = defaultdict(dict)
    rest = []
    for tensor in tensors:
        module, _, name = tensor[0].rpartition(".")
        if name in _ONLY_EXL3:
            groups[module][name] = tensor
        else:
            rest.append(tensor)
    others = []
    for tensor in rest:
        module, _, name = tensor.name.rpartition(".")
        if name == "bias" and module in groups:
            groups[module]["bias"] = tensor
        else:
            others.append(tensor)
    return dict(groups), tuple(others)


def _already_sliced(groups: Iterable[str]) -> tuple[Refusal, ...]:
    ranks = set()
    example = ""
    for name in groups:
        found = SLICED.fullmatch(name)
        if found:
            ranks.add(int(found[2]))
            example = example or name
    if not ranks:
        return ()
    return (
        Refusal(
            f"{example}.trellis",
            f"it is already cut, for {max(ranks) + 1} ranks",
            "start from the checkpoint that it was cut from",
        ),
    )


def _check(name: str, fields: dict[str, Tensor], borrowed: dict[str, Tensor]) -> _Form:
    trellis = fields.get("trellis")
    if trellis is None:
        raise Wrong(f"{name}.trellis", "it is missing, but other parts of the layer are there")
    for field, tensor in fields.items():
        if tensor.dtype not in _TYPES[field]:
            raise Wrong(tensor.name, f"it is {tensor.dtype}, not {' or '.join(_TYPES[field])}")
    if len(trellis.shape) not in (3, 4):
        raise Wrong(trellis.name, f"its shape is {list(trellis.shape)}, not [K/16, N/16, 16*bits]")
    rows, columns, width = trellis.shape[-3:]
    bits, rest = divmod(width, TILE)
    if rest or not 1 <= bits <= 8:
        raise Wrong(trellis.name, f"its last axis is {width}, not 16 times 1 to 8 bits")
    k, n = rows * TILE, columns * TILE
    if not k or not n or k % BLOCK or n % BLOCK:
        raise Wrong(trellis.name, f"it is {k} x {n}: not multiples of {BLOCK}")
    experts = trellis.shape[0] if len(trellis.shape) == 4 else None
    if experts == 0:
        raise Wrong(trellis.name, "it has zero experts")
    everything = fields | borrowed
    codebook = _codebook(fields, experts)
    _check_scale(name, everything, ("suh", "su"), k, experts, borrowed)
    _check_scale(name, everything, ("svh", "sv"), n, experts, borrowed)
    bias = fields.get("bias")
    if bias is not None and bias.shape != _stacked((n,), experts):
        raise Wrong(bias.name, f"its shape is {list(bias.shape)}, the layer has {n} outputs")
    return _Form(k, n, bits, codebook, experts)


def _stacked(shape: tuple[int, ...], experts: int | None) -> tuple[int, ...]:
    return shape if experts is None else (experts, *shape)


def _borrow(
    name: str, fields: Mapping[str, Tensor], shared: Mapping[str, Mapping[str, Tensor]]
) -> dict[str, Tensor]:
    """The Hadamard vectors that this expert does not have but its layer shares."""
    found = EXPERT.fullmatch(name)
    if found is None:
        return {}
    common = shared.get(f"{found[1]}.{SHARED}.{found[3]}", {})
    return {field: tensor for field, tensor in common.items() if field not in fields}


def _codebook(fields: Mapping[str, Tensor], experts: int | None) -> str:
    markers = [fields[name] for name in MARKERS if name in fields]
    if len(markers) > 1:
        raise Wrong(markers[1].name, "it stands beside the marker of another codebook, mcg")
    if not markers:
        return DEFAULT_CODEBOOK
    marker = markers[0]
    allowed = [(), (1,)] + ([(experts,), (experts, 1)] if experts is not None else [])
    if marker.shape not in allowed:
        raise Wrong(marker.name, f"its shape is {list(marker.shape)}, a marker is one number")
    return marker.name.rpartition(".")[2]


def _check_scale(
    name: str,
    fields: Mapping[str, Tensor],
    names: tuple[str, str],
    features: int,
    experts: int | None,
    borrowed: Mapping[str, Tensor],
) -> None:
    plain, packed = (fields.get(each) for each in names)
    if plain is None and packed is None:
        raise Wrong(f"{name}.{names[0]}", "it is missing")
    for tensor, length in ((plain, features), (packed, features // TILE)):
        if tensor is None:
            continue
        own = tensor.name.rpartition(".")[2] not in borrowed
        wanted = _stacked((length,), experts if own else None)
        if tensor.shape != wanted:
            raise Wrong(
                tensor.name,
                f"its shape is {list(tensor.shape)}, the layer {name} needs {list(wanted)}",
            )


def _unused(
    shared: Mapping[str, Mapping[str, Tensor]], modules: Mapping[str, Module]
) -> list[Refusal]:
    """Shared vectors that no expert uses, or that are none."""
    used = {module.fields[field].name for module in modules.values() for field in module.shared}
    problems = []
    for fields in shared.values():
        for field, tensor in fields.items():
            if field not in ("suh", "svh", "su", "sv"):
                problems.append(Refusal(tensor.name, "it is no Hadamard vector that can be shared"))
            elif tensor.name not in used and modules:
                problems.append(Refusal(tensor.name, "no expert needs this shared vector"))
    return problems


def expert_count(config: Mapping[str, Any]) -> int | None:
    """How many routed experts config.json announces for each layer; None: it is no MoE."""
    return next((count for key in EXPERT_COUNTS if (count := number(config, key))), None)


def _experts(
    config: Mapping[str, Any],
    groups: Mapping[str, Mapping[str, Tensor]],
    rest: Iterable[Tensor],
) -> list[Refusal]:
    """Every layer with experts has as many as config.json says, whatever their order."""
    wanted = expert_count(config)
    layers: dict[str, set[str]] = defaultdict(set)
    stacked: dict[str, int] = {}
    fused = False
    for name in (*groups, *(tensor.name for tensor in rest)):
        layer, experts, tail = name.partition(".experts.")
        if not experts:
            continue
        number, _, _ = tail.partition(".")
        if number.isdecimal():
            layers[layer].add(number)
            continue
        fused = True
        trellis = groups[name].get("trellis") if name in groups else None
        if trellis is not None and len(trellis.shape) == 4:
            stacked[trellis.name] = trellis.shape[0]
    problems = []
    for layer, numbers in layers.items():
        found = set(map(int, numbers))
        count = wanted or max(found) + 1
        if len(found) != count:
            missing = sorted(set(range(count)) - found)
            told = f"config.json says {count}" if wanted else f"the last is {count - 1}"
            few = ", ".join(map(str, missing[:5])) + (", ..." if len(missing) > 5 else "")
            problems.append(
                Refusal(
                    f"{layer}.experts",
                    f"it has {len(found)} experts, {told}; missing: {few or 'none'}",
                )
            )
    for name, extent in stacked.items():
        if wanted and extent != wanted:
            problems.append(Refusal(name, f"it has {extent} experts, config.json says {wanted}"))
    if layers and wanted is None and 0 in map(config.get, EXPERT_COUNTS):
        problems.append(
            Refusal(f"{next(iter(layers))}.experts", "it has experts, config.json says 0")
        )
    if wanted and not layers and not fused:
        problems.append(Refusal("", f"config.json says {wanted} experts, it holds none"))
    return problems
