"""Tiny EXL3 models that vLLM serves, whole and cut for two ranks, each with its dense twin.

A Llama, and a GLM-4 MoE whose first layer is dense, with random weights that are the same
everywhere: random symbols, laid into trellises by the slicer tests' encoder. Bits alternate between
3 and 4 from layer to layer, so that parts which vLLM fuses (q, k, v; gate, up; an expert's three)
differ; every boundary of a cut in two is a multiple of 128. The *twin* holds, as float16, the
weights that patchq decodes: stock vLLM serves it, and says what the EXL3 model has to answer.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from patchq.exl3 import decode
from patchq.exl3.families import load
from patchq.exl3.layout import LAYOUTS
from patchq.exl3.slice import run
from tests.support import exl3, trellises
from tests.support.exl3 import Array, Layer, encode_checkpoint, varied
from tests.support.shards import write_safetensors

HIDDEN, INNER, EXPERT_INNER = 256, 512, 256
VOCABULARY = 1024
"""A half is a multiple of 128. The tiny model's tokenizer has fewer words."""
EXPERTS = 4
RANKS = 2
KINDS = ("dense", "moe")

_COMMON = {
    "vocab_size": VOCABULARY,
    "hidden_size": HIDDEN,
    "intermediate_size": INNER,
    "hidden_act": "silu",
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-5,
    "attention_bias": True,
    "tie_word_embeddings": False,
    "bos_token_id": None,
    "dtype": "float16",
}


@dataclass(frozen=True)
class _Kind:
    config: Mapping[str, Any]
    layers: Sequence[Layer]
    dense: int
    """The first layers, whose MLP is not made of experts."""
    seed: int
    """Chosen, with the prompts of tests/runner/test_exl3.py: no answer hangs by a rounding."""


def _blocks(
    count: int, dense: int, queries: int, keys: int, bias: Sequence[str], codebook: str
) -> list[Layer]:
    """All quantized layers; attention and dense MLPs are mul1, experts `codebook`."""
    made = []
    for number in range(count):
        root = f"model.layers.{number}"
        made += [
            Layer(f"{root}.self_attn.q_proj", HIDDEN, queries),
            Layer(f"{root}.self_attn.k_proj", HIDDEN, keys),
            Layer(f"{root}.self_attn.v_proj", HIDDEN, keys),
            Layer(f"{root}.self_attn.o_proj", queries, HIDDEN),
        ]
        if number < dense:
            made += _mlp(f"{root}.mlp", INNER)
    made = varied(made, codebook=["mul1"], bias=lambda layer: layer.name.endswith(tuple(bias)))
    experts = exl3.moe_layers(
        range(dense, count), EXPERTS, HIDDEN, EXPERT_INNER, shared_experts=True
    )
    return varied(made + varied(experts, codebook=[codebook]), bits=[4, 3])


def _mlp(root: str, inner: int) -> list[Layer]:
    return [
        Layer(f"{root}.gate_proj", HIDDEN, inner),
        Layer(f"{root}.up_proj", HIDDEN, inner),
        Layer(f"{root}.down_proj", inner, HIDDEN),
    ]


_QKV = ("q_proj", "k_proj", "v_proj")
_KINDS = {
    "dense": _Kind(
        _COMMON
        | {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "num_hidden_layers": 2,
            "num_attention_heads": 8,
            "num_key_value_heads": 4,
            "head_dim": 64,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        },
        [
            # Cut by input, o_proj's bias belongs to rank 0 alone.
            *_blocks(2, 2, queries=512, keys=256, bias=(*_QKV, "o_proj"), codebook="mul1"),
            Layer("lm_head", HIDDEN, VOCABULARY, bits=6, codebook="mul1"),
        ],
        dense=2,
        seed=16,
    ),
    "moe": _Kind(
        _COMMON
        | {
            "architectures": ["Glm4MoeForCausalLM"],
            "model_type": "glm4_moe",
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 128,
            "use_qk_norm": True,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 10000.0,
                "partial_rotary_factor": 0.5,
            },
            "first_k_dense_replace": 1,
            "moe_intermediate_size": EXPERT_INNER,
            "n_routed_experts": EXPERTS,
            "n_shared_experts": 1,
            "num_experts_per_tok": 2,
            "n_group": 1,
            "topk_group": 1,
            "norm_topk_prob": True,
            "routed_scaling_factor": 1.5,
            "num_nextn_predict_layers": 0,
        },
        _blocks(3, 1, queries=512, keys=256, bias=_QKV, codebook="mcg"),
        dense=1,
        seed=97,
    ),
}


@dataclass(frozen=True)
class TinyExl3:
    """The folders of one model."""

    root: Path

    @property
    def plain(self) -> Path:
        return self.root / "plain"

    @property
    def twin(self) -> Path:
        """The same weights, dense."""
        return self.root / "twin"

    def sliced(self, layout: str) -> Path:
        """Cut for two ranks, as `patchq slice run --layout` writes it."""
        return self.root / layout

    def of_rank(self, rank: int) -> Path:
        """What the machine of this rank keeps of the layout `per-rank`: no file of the other."""
        return self.root / f"of-rank-{rank}"


def tiny_exl3(tiny: Path) -> dict[str, TinyExl3]:
    """Both models by kind, with the tokenizer of the model in `tiny`; made beside it, once."""
    home = tiny.parent
    digest = hashlib.sha256(tiny.name.encode())
    makers = [Path(str(module)) for module in (__file__, exl3.__file__, trellises.__file__)]
    for source in (*makers, *sorted(Path(decode.__file__).parent.glob("*.*"))):
        digest.update(source.read_bytes())
    folder = home / f"exl3-{digest.hexdigest()[:16]}"
    with FileLock(home / "tiny.lock"):
        if not folder.is_dir():
            unfinished = home / "exl3-unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            for kind in KINDS:
                make(unfinished / kind, kind, tiny)
            unfinished.rename(folder)
    return {kind: TinyExl3(folder / kind) for kind in KINDS}


def make(folder: Path, kind: str, tiny: Path) -> TinyExl3:
    """Writes the model `kind` in all its forms below `folder`."""
    made = TinyExl3(folder)
    wanted = _KINDS[kind]
    tensors = encode_checkpoint(
        made.plain, wanted.layers, shards=2, plain=(), seed=wanted.seed, spoil=_finish(wanted)
    )
    ends = json.loads((tiny / "config.json").read_text(encoding="utf-8"))
    config = {**wanted.config, "eos_token_id": ends["eos_token_id"]}
    written = json.loads((made.plain / "config.json").read_text(encoding="utf-8"))
    quantization = {"quantization_config": written["quantization_config"]}
    _accompany(made.plain, {**config, **quantization}, tiny)
    made.twin.mkdir()
    write_safetensors(made.twin / "model.safetensors", _decoded(wanted.layers, tensors))
    _accompany(made.twin, config, tiny)
    for layout in LAYOUTS:
        run(made.plain, made.sliced(layout), RANKS, load(), layout=layout, sync=False)
    for rank in range(RANKS):
        _keep(made.sliced("per-rank"), made.of_rank(rank), rank)
    return made


def _finish(kind: _Kind) -> Callable[[dict[str, Array]], None]:
    """Adds what is not quantized, and brings the scales to where every layer has its say."""

    def finish(tensors: dict[str, Array]) -> None:
        rng = np.random.default_rng(kind.seed)
        for name, array in tensors.items():
            layer, _, field = name.rpartition(".")
            # Random layers would add little to the embedding, and random logits tell little apart.
            factor = {"svh": 8 if layer == "lm_head" else 3, "bias": 0.25}.get(field)
            if factor is not None:
                tensors[name] = (array * np.float16(factor)).astype("<f2")
        tensors.update(_plain(kind, rng))

    return finish


def _plain(kind: _Kind, rng: np.random.Generator) -> dict[str, Array]:
    config = kind.config

    def halves(size: float, *shape: int, mean: float = 0) -> Array:
        return rng.normal(mean, size, shape).astype("<f2")

    found = {
        "model.embed_tokens.weight": halves(0.5, VOCABULARY, HIDDEN),
        "model.norm.weight": halves(0.1, HIDDEN, mean=1),
    }
    for number in range(config["num_hidden_layers"]):
        root = f"model.layers.{number}"
        for norm in ("input_layernorm", "post_attention_layernorm"):
            found[f"{root}.{norm}.weight"] = halves(0.1, HIDDEN, mean=1)
        if config.get("use_qk_norm"):
            for norm in ("q_norm", "k_norm"):
                found[f"{root}.self_attn.{norm}.weight"] = halves(0.1, config["head_dim"], mean=1)
        if number >= kind.dense:
            found[f"{root}.mlp.gate.weight"] = halves(0.2, EXPERTS, HIDDEN)
            bias = rng.normal(0, 0.1, EXPERTS).astype("<f4")
            found[f"{root}.mlp.gate.e_score_correction_bias"] = bias
    if all(layer.name != "lm_head" for layer in kind.layers):
        found["lm_head.weight"] = halves(0.15, VOCABULARY, HIDDEN)
    return found


def _decoded(layers: Sequence[Layer], tensors: Mapping[str, Array]) -> dict[str, Array]:
    """The tensors with each quantized layer as `NAME.weight`, float16 [outputs, inputs]."""
    found = dict(tensors)
    for layer in layers:
        fields = {
            name.rpartition(".")[2]: found.pop(name)
            for name in tensors
            if name.rpartition(".")[0] == layer.name
        }
        whole = decode.weight(decode.linear(layer.name, fields, layer.codebook))
        found[f"{layer.name}.weight"] = np.ascontiguousarray(whole.T)
        if "bias" in fields:
            found[f"{layer.name}.bias"] = fields["bias"]
    return found


def _accompany(folder: Path, config: Mapping[str, Any], tiny: Path) -> None:
    """config.json, and the tokenizer and the template of the tiny model."""
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    for path in tiny.iterdir():
        if path.name != "config.json" and path.suffix != ".safetensors":
            shutil.copy(path, folder)


def _keep(source: Path, target: Path, rank: int) -> None:
    """As docs/rank-slicing.md copies it to the machine of `rank`."""
    target.mkdir()
    others = tuple(f".rank{other}.safetensors" for other in range(RANKS) if other != rank)
    for path in source.iterdir():
        if not path.name.endswith(others):
            os.link(path, target / path.name)
