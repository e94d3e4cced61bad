"""What a drafter's config.json says, in either of the two forms that vLLM reads.

Native (z-lab): sizes at the top, `dflash_config` with block_size, target_layer_ids, mask_token_id
and DFlash2's sizes. speculators: `speculators_model_type`, the same names at the top,
`aux_hidden_state_layer_ids`, and the layers' sizes in `transformer_layer_config` (vLLM 0.29.0 to
0.33.0: transformers_utils/configs/speculators/algos.py, models/qwen3_dflash.py, qwen3_dflash2.py,
v1/worker/gpu/spec_decode/eagle/eagle3_utils.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from patchq.exl3.families import number

KINDS = {"DFlashDraftModel": "DFlash", "DFlash2DraftModel": "DFlash2"}
_SPECULATORS = {"dflash": "DFlash", "dflash2": "DFlash2"}
NEEDED = ("conv_kernel_size", "conv_group_size", "selector_rank", "selector_top_k")
"""vLLM's DFlash2 takes these from dflash_config, without a default."""


@dataclass(frozen=True)
class Drafter:
    """Numbers are None where the file does not say them."""

    kind: str
    """DFlash, DFlash2, or the architecture that it names instead."""
    block_size: int | None
    """The anchor (the last accepted token) and the masks behind it."""
    from_anchor: bool
    """Whether the anchor's place is sampled from, too."""
    hidden_size: int | None
    vocab_size: int | None
    draft_vocab_size: int | None
    target_hidden_size: int | None
    target_layers: tuple[int, ...]
    """The target's layers whose output it reads, counted from 0."""
    num_target_layers: int | None
    mask_token: int | None
    group_size: int | None
    lacking: tuple[str, ...]
    """What DFlash2 needs and the file does not have."""

    @property
    def is_dflash(self) -> bool:
        return self.kind in KINDS.values()

    @property
    def trained(self) -> int | None:
        """For how many draft tokens it was trained."""
        if self.block_size is None:
            return None
        return self.block_size if self.from_anchor else self.block_size - 1


def parse(config: Mapping[str, Any]) -> Drafter:
    """What is of another type than it must be counts as not said."""
    inner = _object(config, "dflash_config")
    sizes = _object(config, "transformer_layer_config") or config
    kind = _kind(config)

    def said(name: str) -> int | None:
        return _whole(inner.get(name, config.get(name)))

    ids = inner.get("target_layer_ids") or config.get("aux_hidden_state_layer_ids")
    if not ids and isinstance(config.get("eagle_aux_hidden_state_layer_ids"), list):
        # Counted by vLLM from 1: what the layer before gives.
        ids = [i - 1 for i in config["eagle_aux_hidden_state_layer_ids"] if type(i) is int]
    return Drafter(
        kind,
        said("block_size"),
        inner.get("sample_from_anchor", config.get("sample_from_anchor")) is True,
        number(sizes, "hidden_size"),
        number(sizes, "vocab_size"),
        _whole(config.get("draft_vocab_size")),
        said("target_hidden_size"),
        tuple(i for i in ids if type(i) is int) if isinstance(ids, list) else (),
        said("num_target_layers"),
        said("mask_token_id"),
        said("conv_group_size"),
        tuple(name for name in NEEDED if kind == "DFlash2" and said(name) is None),
    )


def _kind(config: Mapping[str, Any]) -> str:
    speculators = config.get("speculators_model_type")
    if isinstance(speculators, str):
        return _SPECULATORS.get(speculators, speculators)
    architectures = config.get("architectures")
    names = [str(each) for each in architectures] if isinstance(architectures, list) else []
    return next((KINDS[name] for name in names if name in KINDS), names[0] if names else "")


def _object(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = config.get(name)
    return value if isinstance(value, dict) else {}


def _whole(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None
