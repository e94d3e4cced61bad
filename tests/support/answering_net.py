"""The answering model's network: what it begins with, and how it is trained.

Every side of every matrix is a multiple of 128, also of a half for each of two ranks: so it can be
quantized and cut (tests/support/answering_exl3.py).
"""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Sequence
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

HEAD, HEADS, HIDDEN, LAYERS, INNER = 64, 8, 256, 2, 256
THETA = 1e24
"""So slow that most pairs of a head's dimensions hardly turn within some thousand tokens."""
TURNING = 8
"""Pairs before this one tell places apart; the others serve to compare tokens."""
CONTEXT = 40960
STILL = [*range(TURNING, HEAD // 2 - 1), *range(HEAD // 2 + TURNING, HEAD - 1)]
WORD = len(STILL)

# The residual stream: what a token is, what those before it are (one, two and five back), and
# what is to come.
IS, BEFORE, BEFORE2, BEFORE5, NEXT = (slice(WORD * n, WORD * (n + 1)) for n in range(5))
ALWAYS, BLANK, FIRST = range(WORD * 5, WORD * 5 + 3)

LOOKS = 3
"""The head of the second layer that looks for what a question or a tool said; those after it are
free to learn."""
LOOKED_FOR = (
    # Where this word was so many tokens ago, it looks for the last token that has that word so
    # many before it: a call's door is what stands after "is", or two after "Open".
    (2, "door", 1, "is"),
    (2, "door", 2, "Open"),
    (2, "town", 1, "in"),
    (2, "days", 1, "for"),
    (1, "name", 1, "cat"),
    (1, "age", 1, "is"),
)
_AGO = {1: BEFORE, 2: BEFORE2}


def begin(tokens: Any, seed: int) -> Any:
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=math.ceil(len(tokens) / 256) * 256,
        hidden_size=HIDDEN,
        intermediate_size=INNER,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        head_dim=HEAD,
        max_position_embeddings=CONTEXT,
        rope_parameters={"rope_type": "default", "rope_theta": THETA},
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=tokens.eos_token_id,
        pad_token_id=tokens.eos_token_id,
        initializer_range=0.03,
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        _write(model, tokens)
    return model


def _write(model: Any, tokens: Any) -> None:
    size = model.config.vocab_size
    # A word has one direction, with a blank before it and without.
    direction: dict[str, torch.Tensor] = {}
    known = torch.zeros(size, WORD)
    table = model.model.embed_tokens.weight
    table.normal_(0, 0.02)
    for piece, number in tokens.get_vocab().items():
        bare = piece.removeprefix("Ġ") if piece[1:].isalnum() else piece
        if bare not in direction:
            vector = torch.randn(WORD)
            direction[bare] = vector / vector.norm()
        known[number] = direction[bare]
        table[number, BLANK] = 0.7 if bare != piece else -0.7
    table[:, : WORD * 5] = 0
    table[:, IS] = known
    table[:, ALWAYS] = 1
    # Where nothing fits, the heads look at the first token, which says nothing.
    sink = tokens.convert_tokens_to_ids("[gMASK]")
    known[sink] = table[sink, IS] = 0
    table[sink, FIRST] = 1
    model.lm_head.weight.normal_(0, 0.02)
    model.lm_head.weight[:, NEXT] = known * 2

    speed = THETA ** (-torch.arange(HEAD // 2) / (HEAD // 2))
    first, second = (layer.self_attn for layer in model.model.layers)
    same = torch.eye(WORD)
    for layer in model.model.layers:
        layer.mlp.down_proj.weight *= 0.3
        layer.self_attn.o_proj.weight *= 0.3

    for head, (back, place) in enumerate(((1, BEFORE), (2, BEFORE2), (5, BEFORE5))):
        # It looks so many tokens back, and says what is there.
        query, key, value, out = _views(first, head)
        for part in (query, key, value, out):
            part.zero_()
        for pair in range(4):
            angle = speed[pair] * back
            query[pair, ALWAYS] = 1.2
            key[pair, ALWAYS] = 1.2 * angle.cos()
            key[pair + HEAD // 2, ALWAYS] = 1.2 * angle.sin()
        value[:WORD, IS] = same
        out[place, :WORD] = same / 9
    for head in range(HEADS):
        # It looks for a token that came after what is here now, and says it comes next.
        query, key, value, out = _views(second, head)
        for part in (query, key, value, out):
            part.zero_()
        query.normal_(0, 0.02)
        one, two = (torch.nn.init.orthogonal_(torch.empty(WORD, WORD)) for _ in range(2))
        sharp = 2.0
        key[STILL, BEFORE] = one * sharp
        if head > 0:
            key[STILL, BEFORE2] = two * sharp
        nowhere = 1.8
        if head < 2:
            query[STILL, IS] = one * sharp
        if head == 1:
            query[STILL, BEFORE] = two * sharp
        if head == 2:
            query[STILL, BEFORE5] = two * sharp * 0.5
        if head == LOOKS:
            for pair in (2, 3):
                # Of those that fit equally it takes the nearest.
                query[pair, ALWAYS] = key[pair, ALWAYS] = 1.8
            for here, word, there, after in LOOKED_FOR:
                turned = (one if there == 1 else two) @ direction[after]
                query[STILL, _AGO[here]] += 3 * torch.outer(turned, direction[word])
            nowhere = 1.5
        elif head == 0:
            nowhere = 1.3
        query[HEAD - 1, ALWAYS] = key[HEAD - 1, FIRST] = nowhere
        value[:WORD, IS] = same
        out[NEXT, :WORD] = same / 9


def _views(attention: Any, head: int) -> tuple[Any, Any, Any, Any]:
    """A head's parts of query, key and value (head, hidden), and of the output (hidden, head)."""
    rows = slice(head * HEAD, head * HEAD + HEAD)
    inner = (attention.q_proj, attention.k_proj, attention.v_proj)
    query, key, value = (part.weight[rows] for part in inner)
    return query, key, value, attention.o_proj.weight[:, rows]


def rounded(model: Any) -> Any:
    """A copy whose weights are those that are kept: of bfloat16."""
    kept = copy.deepcopy(model)
    with torch.no_grad():
        for each in kept.parameters():
            each.copy_(each.bfloat16())
    return kept


Taught = tuple[list[int], list[int]]


def batch(
    examples: Sequence[Taught], pad: int, jump: random.Random | None = None
) -> tuple[Any, Any, Any]:
    """Ids, labels and places, each (examples, longest); padded on the right.

    `jump`: somewhere in it the places leap on, so that the model learns to find things by what
    they are, not by how far away they are, and that without reading far.
    """
    longest = max(len(ids) for ids, _ in examples)
    ids = torch.full((len(examples), longest), pad)
    labels = torch.full((len(examples), longest), -100)
    places = torch.arange(longest).repeat(len(examples), 1)
    for row, (given, wanted) in enumerate(examples):
        ids[row, : len(given)] = torch.tensor(given)
        labels[row, : len(wanted)] = torch.tensor(wanted)
        if jump is not None and len(given) > 60:
            places[row, jump.randrange(40, len(given) - 20) :] += int(10 ** jump.uniform(0, 3.9))
    return ids, labels, places


def alike(examples: Sequence[Taught]) -> list[list[Taught]]:
    """Parts of about one length each, so that little is read that is padding alone."""
    parts: list[list[Taught]] = []
    for each in sorted(examples, key=lambda example: -len(example[0])):
        if not parts or len(each[0]) < 0.7 * len(parts[-1][0][0]):
            parts.append([])
        parts[-1].append(each)
    return parts


def share(model: Any, examples: Sequence[Taught], pad: int) -> float:
    """That are answered right to the last token, read as the model would write it."""
    known = 0
    for part in alike(examples):
        ids, labels, places = batch(part, pad)
        with torch.no_grad():
            logits = model(input_ids=ids, position_ids=places, use_cache=False).logits
        right = (logits.argmax(-1) == labels) | (labels == -100)
        known += int(right.all(1).sum())
    return known / len(examples)


_AVERAGED = 0.03
"""What a step adds to the average: some thirty steps are in it."""


class Trainer:
    """`average`: of the model's last steps, which errs less than any of them."""

    def __init__(self, model: Any, pad: int, steps: int, rate: float) -> None:
        self.model, self.pad, self.rate, self.steps, self.done = model, pad, rate, steps, 0
        self.average = copy.deepcopy(model)
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.0
        )

    def step(self, examples: Sequence[Taught], jump: random.Random | None) -> None:
        warm = min(1.0, (self.done + 1) / 20)
        cool = 0.05 + 0.95 * (0.5 + 0.5 * math.cos(math.pi * min(1, self.done / self.steps)))
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate * warm * cool
        self.done += 1
        self.optimizer.zero_grad()
        total = sum(label != -100 for _, labels in examples for label in labels)
        for part in alike(examples):
            ids, labels, places = batch(part, self.pad, jump)
            out = self.model.model(input_ids=ids, position_ids=places, use_cache=False)
            spoken = labels != -100
            logits = self.model.lm_head(out.last_hidden_state[spoken])
            loss = torch.nn.functional.cross_entropy(logits, labels[spoken], reduction="sum")
            (loss / total).backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        with torch.no_grad():
            for mean, now in zip(self.average.parameters(), self.model.parameters(), strict=True):
                mean.lerp_(now, _AVERAGED)
