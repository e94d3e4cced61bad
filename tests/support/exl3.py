"""Small EXL3 checkpoints, made of random bits, and where exllamav3's own reference results are."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from patchq.exl3.model import MARKERS
from tests.support.shards import BFLOAT16, TORCH, write_safetensors
from tests.support.trellises import pack

Array = NDArray[Any]

REFERENCE = Path(__file__).resolve().parents[2].parent / "shared" / "exl3"
"""exllamav3's own tensors: `X.safetensors` and `X.reference.safetensors`."""

needs_reference = pytest.mark.skipif(
    not REFERENCE.is_dir(),
    reason="needs ../shared/exl3 beside the repository (tensors quantized by exllamav3 itself)",
)

# Layers.


@dataclass(frozen=True)
class Layer:
    """A quantized layer to make: W [k, n]; `experts` of them stacked, if not None."""

    name: str
    k: int
    n: int
    bits: int = 4
    codebook: str = "mcg"
    bias: bool = False
    legacy: bool = False
    """Packed signs `su`, `sv` instead of scales."""
    experts: int | None = None
    shared: Mapping[str, str] | None = None
    """Names of vectors that other layers have as well, by field (suh, svh)."""


def layer_tensors(layer: Layer, rng: np.random.Generator) -> dict[str, Array]:
    """The stored tensors of a layer, by full name."""
    front = () if layer.experts is None else (layer.experts,)
    tiles = (*front, layer.k // 16, layer.n // 16, 256)
    symbols = rng.integers(0, 1 << layer.bits, tiles)
    found: dict[str, Array] = {}

    def put(field: str, array: Array) -> None:
        name = (layer.shared or {}).get(field, f"{layer.name}.{field}")
        found[name] = array

    if layer.legacy:
        put("su", rng.integers(-(1 << 15), 1 << 15, (*front, layer.k // 16)).astype("<i2"))
        put("sv", rng.integers(-(1 << 15), 1 << 15, (*front, layer.n // 16)).astype("<i2"))
    else:
        put("suh", _scale(rng, (*front, layer.k), 1.0))
        put("svh", _scale(rng, (*front, layer.n), 0.02))
    put("trellis", pack(symbols, layer.bits))
    if layer.codebook in MARKERS:
        put(layer.codebook, np.full(front, MARKERS[layer.codebook], "<u4").view("<i4"))
    if layer.bias:
        put("bias", rng.normal(0, 1, (*front, layer.n)).astype("<f2"))
    return found


def _scale(rng: np.random.Generator, shape: tuple[int, ...], size: float) -> Array:
    signs = rng.choice((-1.0, 1.0), shape)
    return (signs * rng.uniform(0.5 * size, 1.5 * size, shape)).astype("<f2")


def moe_layers(
    layers: Iterable[int] = (1,),
    experts: int = 2,
    hidden: int = 256,
    intermediate: int = 256,
    names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj"),
    prefix: str = "model.layers.{layer}.mlp.experts",
    shared_experts: bool = False,
    shared_hadamard: bool = False,
) -> list[Layer]:
    """Routed experts, one layer for each projection; and shared ones, if asked for.

    `shared_hadamard`: all experts of a layer have one `suh` for their input and one `svh` for
    their output, as in checkpoints whose bits are mixed by expert.
    """
    gate, up, down = names
    shapes = {
        gate: (hidden, intermediate),
        up: (hidden, intermediate),
        down: (intermediate, hidden),
    }
    made = []
    for layer in layers:
        root = prefix.format(layer=layer)
        for expert in range(experts):
            for name, (k, n) in shapes.items():
                shared = None
                if shared_hadamard:
                    field = "svh" if name == down else "suh"
                    shared = {field: f"{root}.shared_h.{name}.{field}"}
                made.append(Layer(f"{root}.{expert}.{name}", k, n, shared=shared))
        if shared_experts:
            root = root.removesuffix("experts") + "shared_experts"
            made += [Layer(f"{root}.{name}", k, n) for name, (k, n) in shapes.items()]
    return made


def fused_layers(
    layers: Iterable[int] = (1,), experts: int = 2, hidden: int = 256, intermediate: int = 256
) -> list[Layer]:
    """Experts stacked in one tensor, gate and up side by side."""
    made = []
    for layer in layers:
        root = f"model.layers.{layer}.mlp.experts"
        made += [
            Layer(f"{root}.gate_up_proj", hidden, 2 * intermediate, experts=experts),
            Layer(f"{root}.down_proj", intermediate, hidden, experts=experts),
        ]
    return made


def dense_layers(
    layers: Iterable[int] = (0,),
    hidden: int = 256,
    intermediate: int = 512,
    key_value: int = 256,
    mlp: bool = True,
    head: int = 0,
) -> list[Layer]:
    """Quantized attention (and MLP) of dense layers; `head`: the width of a quantized lm_head."""
    made = []
    for layer in layers:
        root = f"model.layers.{layer}"
        made += [
            Layer(f"{root}.self_attn.q_proj", hidden, hidden),
            Layer(f"{root}.self_attn.k_proj", hidden, key_value),
            Layer(f"{root}.self_attn.v_proj", hidden, key_value),
            Layer(f"{root}.self_attn.o_proj", hidden, hidden),
        ]
        if mlp:
            made += [
                Layer(f"{root}.mlp.gate_proj", hidden, intermediate),
                Layer(f"{root}.mlp.up_proj", hidden, intermediate),
                Layer(f"{root}.mlp.down_proj", intermediate, hidden),
            ]
    if head:
        made.append(Layer("lm_head", hidden, head))
    return made


def varied(
    layers: Iterable[Layer], **fields: Sequence[Any] | Callable[[Layer], Any]
) -> list[Layer]:
    """`layers` with fields set: values given in turn, or by a function of the layer.

    `varied(layers, bits=[3, 4])` alternates, `varied(layers, bias=lambda x: "q_proj" in x.name)`.
    """
    made = []
    for place, layer in enumerate(layers):
        values = {
            name: given(layer) if callable(given) else given[place % len(given)]
            for name, given in fields.items()
        }
        made.append(replace(layer, **values))
    return made


# Checkpoints.


def plain_tensors(layers: Iterable[int], hidden: int, rng: np.random.Generator) -> dict[str, Array]:
    """What is not quantized: embeddings, norms, a router."""

    def bfloat16(*shape: int) -> Array:
        values = rng.normal(0, 0.02, shape).astype("<f4")
        return (values.view("<u4") >> 16).astype("<u2").view(BFLOAT16)

    found = {
        "model.embed_tokens.weight": bfloat16(64, hidden),
        "model.norm.weight": bfloat16(hidden),
    }
    for layer in layers:
        root = f"model.layers.{layer}"
        found[f"{root}.input_layernorm.weight"] = bfloat16(hidden)
        found[f"{root}.mlp.gate.weight"] = rng.normal(0, 1, (4, hidden)).astype("<f4")
    return found


def encode_checkpoint(
    folder: Path,
    layers: Sequence[Layer] | None = None,
    *,
    bits: int | None = None,
    codebook: str | None = None,
    shards: int = 1,
    index: bool | None = None,
    plain: Iterable[int] = (0, 1),
    seed: int = 0,
    manifest: bool = True,
    spoil: Callable[[dict[str, Array]], None] | None = None,
) -> dict[str, Array]:
    """Write a checkpoint into `folder` as exllamav3 0.0.43 does, and return its tensors.

    `layers`: a small MoE unless given; `bits` and `codebook` for all of them, if given. `shards`
    files with an index, or `model.safetensors` alone (`index` overrides that). `plain`: layers
    that get unquantized tensors. `manifest`: whether there is a quantization_config.json.
    `spoil` may change the tensors before they are written. The same arguments, the same bytes.
    """
    rng = np.random.default_rng(seed)
    made = list(moe_layers() if layers is None else layers)
    if bits is not None:
        made = varied(made, bits=[bits])
    if codebook is not None:
        made = varied(made, codebook=[codebook])
    tensors = plain_tensors(plain, made[0].k, rng)
    for layer in made:
        for name, array in layer_tensors(layer, rng).items():
            tensors.setdefault(name, array)
    if spoil is not None:
        spoil(tensors)
    folder.mkdir(parents=True, exist_ok=True)
    _write_shards(folder, tensors, shards, shards > 1 if index is None else index)
    _write_configs(folder, made, tensors, manifest)
    (folder / "tokenizer.json").write_text('{"version": "1.0"}\n')
    return tensors


def _write_shards(folder: Path, tensors: dict[str, Array], shards: int, index: bool) -> None:
    names = list(tensors)
    share = -(-len(names) // shards)
    places = {}
    for shard in range(shards):
        part = names[shard * share : (shard + 1) * share]
        file = "model.safetensors"
        if shards > 1:
            file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        write_safetensors(folder / file, {name: tensors[name] for name in part})
        places.update(dict.fromkeys(part, file))
    if index:
        total = sum(array.nbytes for array in tensors.values())
        text = json.dumps({"metadata": {"total_size": total}, "weight_map": places}, indent=4)
        (folder / "model.safetensors.index.json").write_text(text)


def _write_configs(
    folder: Path, layers: Sequence[Layer], tensors: Mapping[str, Array], manifest: bool
) -> None:
    widths = {layer.bits for layer in layers}
    books = {layer.codebook for layer in layers}
    quantization: dict[str, Any] = {
        "quant_method": "exl3",
        "version": "0.0.43",
        "bits": sum(layer.bits for layer in layers) / len(layers)
        if len(widths) > 1
        else min(widths),
        "head_bits": 6,
        "calibration": {"rows": 250, "cols": 2048},
        "out_scales": "always",
        "codebook": min(books) if len(books) == 1 else "mcg",
    }
    config = {
        "architectures": ["TinyForCausalLM"],
        "model_type": "tiny",
        "hidden_size": layers[0].k,
        "quantization_config": quantization,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=4))
    if not manifest:
        return
    storage: dict[str, Any] = {}
    for layer in layers:
        stored = {
            name: {"shape": list(array.shape), "n_bytes": array.nbytes, "dtype": TORCH[array.dtype]}
            for name, array in tensors.items()
            if name.rpartition(".")[0] == layer.name
        }
        entry = {"stored_tensors": stored, "quant_format": "exl3", "bits_per_weight": layer.bits}
        if layer.codebook in MARKERS:
            entry[f"{layer.codebook}_multiplier"] = MARKERS[layer.codebook]
        storage[layer.name] = entry
    text = json.dumps({**quantization, "tensor_storage": storage}, indent=4)
    (folder / "quantization_config.json").write_text(text)
