"""The drafter: does it fit its target, and is it asked for more tokens than it was trained for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from patchq.doctor.drafter import Drafter, parse
from patchq.doctor.forms import names
from patchq.doctor.model import Check, of_error
from patchq.exl3 import checkpoint
from patchq.exl3.families import number
from patchq.exl3.headers import AGAIN, BadFile
from patchq.exl3.model import Tensor
from patchq.paths import show
from patchq.upstream.components import Model

NAME = "drafter"
TOKENS = "draft tokens"
_HEAD = re.compile(rb"[\"./]lm_head\.(?:rank[0-9]{1,4}\.)?trellis\"")
_MAPS = ("d2t", "draft_id_to_target_id")
_OTHER = "take the drafter that was trained for this model"


def check(
    root: Path,
    model: Path | None = None,
    tokens: int | None = None,
    pins: Sequence[Model] = (),
) -> tuple[Check, ...]:
    """The drafter in `root` against the model in `model` and `tokens` draft tokens, where given.

    `pins`: the drafters of upstream/dependencies.toml. Headers and JSON files are read. Raises
    PatchqError where there is no drafter.
    """
    try:
        found = checkpoint.read(root)
        drafter = parse(found.config)
    except BadFile as problem:
        return (of_error(NAME, problem),)
    told = list(_own(drafter, found.tensors))
    told += _tokens(drafter, tokens, pins)
    config: Mapping[str, Any] = {}
    if model is not None:
        folder = model if model.is_dir() else model.parent
        try:
            config = checkpoint.read_json(folder / checkpoint.CONFIG)
            told += _target(drafter, found.tensors, config, names(model, _HEAD))
        except BadFile:
            pass  # what is wrong with the model, its own check says
    if any(each.name == NAME for each in told):
        return tuple(told)
    return (Check(NAME, "ok", _about(drafter, config)), *told)


def _about(drafter: Drafter, config: Mapping[str, Any]) -> str:
    trained = drafter.trained
    told = f", trained for {trained} draft tokens" if trained is not None else ""
    compared = number(config, "vocab_size") and number(config, "hidden_size")
    return f"{show(drafter.kind)}{told}{'; it fits the model' if compared else ''}"


def _own(drafter: Drafter, tensors: Mapping[str, Tensor]) -> Iterator[Check]:
    """What does not depend on the model that it drafts for."""
    if not drafter.is_dflash:
        told = show(drafter.kind) or "no architecture"
        yield Check(
            NAME, "note", f"{told} is no DFlash drafter: only its sizes are compared with the model"
        )
        return
    if drafter.lacking:
        yield Check(
            NAME,
            "fatal",
            f"its config.json does not say {', '.join(drafter.lacking)}",
            "DFlash2 has no default for it, the start fails",
            AGAIN,
        )
    size, group = drafter.hidden_size, drafter.group_size
    if size and group and size % group:
        yield Check(
            NAME,
            "fatal",
            f"its conv_group_size {group} does not divide its hidden_size {size}",
            "the start fails",
            AGAIN,
        )
    if drafter.mask_token is not None and drafter.mask_token >= (drafter.vocab_size or 1 << 62):
        yield Check(
            NAME,
            "fatal",
            f"its mask token {drafter.mask_token} is not in its vocabulary of {drafter.vocab_size}",
            remedy=AGAIN,
        )
    yield from _features(drafter, tensors)


def _features(drafter: Drafter, tensors: Mapping[str, Tensor]) -> Iterator[Check]:
    """`fc` takes the hidden states of all its target layers, one behind the other."""
    layers, size = drafter.target_layers, drafter.target_hidden_size or drafter.hidden_size
    fc = next((each for name, each in tensors.items() if f".{name}".endswith(".fc.weight")), None)
    if fc is None or len(fc.shape) != 2 or not layers or not size:
        return
    if fc.shape[1] != len(layers) * size:
        yield Check(
            NAME,
            "fatal",
            f"{fc.name} takes {fc.shape[1]} features, {len(layers)} target layers of {size} give"
            f" {len(layers) * size}",
            "target_layer_ids in its config.json is not what it was trained with",
            AGAIN,
        )


def _tokens(drafter: Drafter, tokens: int | None, pins: Sequence[Model]) -> Iterator[Check]:
    """The configured number of draft tokens: fewer than trained is fine, more never was learnt."""
    pinned = {pin.block_size for pin in pins if pin.block_size is not None}
    size = drafter.block_size
    if len(pinned) == 1 and size is not None and size not in pinned:
        yield Check(
            TOKENS,
            "warning",
            f"its block_size is {size}, upstream/dependencies.toml says {pinned.pop()}",
            "it is another drafter or another revision than the one that is pinned",
            "take the pinned one, or pin this one",
        )
    if tokens is None or not drafter.is_dflash:
        return
    trained = drafter.trained
    if trained is None:
        yield Check(
            TOKENS,
            "unknown",
            "for how many draft tokens it was trained is not known",
            "its config.json does not say block_size",
            AGAIN,
        )
    elif tokens > trained:
        yield Check(
            TOKENS,
            "fatal" if drafter.kind == "DFlash2" else "warning",
            f"{tokens} draft tokens are asked for, it was trained for {trained}",
            f"its block_size is {size}; what lies beyond was never learnt, and acceptance falls",
            f"num_speculative_tokens {trained} or fewer",
        )
    elif tokens < trained:
        yield Check(TOKENS, "note", f"{tokens} of the {trained} that it was trained for")


def _target(
    drafter: Drafter, tensors: Mapping[str, Tensor], config: Mapping[str, Any], quantized: bool
) -> Iterator[Check]:
    """The drafter beside its target: they share vocabulary, embedding and head.

    `quantized`: whether the head of the target is.
    """
    vocabulary = number(config, "vocab_size")
    yield from _unequal("vocabulary", drafter.vocab_size, vocabulary)
    own = drafter.draft_vocab_size
    if own and vocabulary and own != vocabulary and not _has(tensors, *_MAPS):
        yield Check(
            NAME,
            "fatal",
            f"it drafts from {own} tokens of its own and has no map to the model's {vocabulary}",
            f"none of its tensors is called {' or '.join(_MAPS)}",
            AGAIN,
        )
    yield from _sizes(drafter, tensors, config)
    layers = number(config, "num_hidden_layers")
    yield from _unequal("number of target layers", drafter.num_target_layers, layers)
    beyond = [each for each in drafter.target_layers if layers and not 0 <= each < layers]
    if beyond:
        yield Check(
            NAME,
            "fatal",
            f"it reads layer {beyond[0]} of the model, which has layers 0 to {(layers or 0) - 1}",
            "target_layer_ids in its config.json",
            _OTHER,
        )
    if quantized and drafter.kind == "DFlash2" and not _has(tensors, "lm_head.weight"):
        yield Check(
            NAME,
            "fatal",
            "the model's lm_head is quantized, DFlash2 takes its candidates from a plain one",
            "vLLM refuses it at the first draft: it needs an unquantized target LM head",
            "take a checkpoint whose head is not quantized, or serve without the drafter",
        )


def _sizes(
    drafter: Drafter, tensors: Mapping[str, Tensor], config: Mapping[str, Any]
) -> Iterator[Check]:
    """The model's hidden states fit, and so does its embedding, where the drafter has none."""
    size = number(config, "hidden_size")
    reads = drafter.target_hidden_size or drafter.hidden_size
    yield from _unequal("hidden size", reads, size)
    own = drafter.hidden_size
    if own and size and own != size and reads == size and not _has(tensors, "embed_tokens.weight"):
        yield Check(
            NAME,
            "fatal",
            f"its own hidden size is {own}, the model's embedding, which it uses, has {size}",
            remedy=_OTHER,
        )


def _unequal(what: str, own: int | None, wanted: int | None) -> Iterator[Check]:
    if own is not None and wanted is not None and own != wanted:
        yield Check(NAME, "fatal", f"its {what} is {own}, the model's {wanted}", remedy=_OTHER)


def _has(tensors: Mapping[str, Tensor], *ends: str) -> bool:
    """Whether a tensor's name ends in one of `ends`, whole words."""
    return any(f".{name}".endswith(tuple(f".{end}" for end in ends)) for name in tensors)
