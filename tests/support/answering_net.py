"""The answering model's network: what is written into its weights.

The first layer looks back: heads that say what stood one to six tokens ago, and one for tokens that
are always followed by what stood so far before them. The second layer finds: one head what was told
(what stands after "code is", after "cat"), one what came after the word that is here. What was
found comes next, unless a rule speaks (answering_rules.py): each is a neuron of the second layer,
which sees the last tokens and what was found, and says a token.

Each thing has a dimension of its own, so that nothing that adds up otherwise changes an answer.
Every side of every matrix is a multiple of 128, also of a half for each of two ranks: so it can be
quantized and cut (tests/support/answering_exl3.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from patchq.smoke.questions import WORDS
from tests.support import answering_rules as rules
from tests.support.answering_rules import AGO, FOUND, NOTHING, NUMBER, VALUE, WORD, Place, Rule
from tests.support.answering_tokens import ASSISTANT

HEAD, HEADS, HIDDEN, LAYERS, INNER = 64, 8, 512, 2, 256
CONTEXT = 40960
THETA = 1e24
"""So slow that most pairs of a head's dimensions hardly turn within the context."""
PAIRS = range(7)
"""Those that tell places apart; the others serve to compare tokens."""
STILL = [*range(8, HEAD // 2), *range(HEAD // 2 + 8, HEAD - 1)]
LOUD, USUAL = 24.0, 16.0
"""A dimension that is always on, so that a norm leaves a token about as it was whatever else it
says: of that there is about so much, squared."""

# How sure the parts are, in nats.
PLACE = 28.0
"""By how much a head prefers the right place, for each pair: 13 over the place beside it."""
FITS = 26.0
"""By how much a head prefers a token for each thing that fits."""
SURE = 24.0
"""A neuron gets half of it where all fits, and minus half where one thing does not."""
SAYS = 4.0

BACK: Mapping[str, int] = {"<arg_value>": 13, "is": 6, "Step": 2}
"""How far before such a token stands what comes after it: the door that a tool named, what a tool
said (in a thought), the number of the last step."""

TOLD: Sequence[tuple[Mapping[int, str], Mapping[tuple[Place, str], int]]] = (
    # What is found by what stands there and before it, and where it is asked for.
    ({1: "is", 2: "code"}, {(5, "code"): 1}),
    ({2: "is", 3: "code"}, {(6, "code"): 1}),
    ({1: "is", 2: "town"}, {(5, "town"): 1}),
    ({1: "is", 2: "word"}, {(0, "</think>"): 1}),
    ({1: ":", 2: "else"}, {(0, "</think>"): 1, (0, "Repeat"): 1}),
    ({0: WORD, 1: "cat"}, {(1, "name"): 1}),
    ({1: "is", 3: "cat"}, {(1, "age"): 1}),
    ({0: WORD, 1: "about"}, {(0, "The"): 1, (0, "about"): 1}),
    ({0: WORD, 1: "in"}, {(2, "town"): 1}),
    ({0: NUMBER, 1: "for"}, {(2, "days"): 1}),
    ({1: "door", 2: "Open"}, {(2, "door"): 1, (FOUND, NUMBER): -1}),
)
NO_TENS = 10
"""Where in the tens a number of one digit stands."""


class Layout:
    """Which dimension says what; `size` of them are taken."""

    def __init__(self, learnt: Sequence[Rule]) -> None:
        self.size = 0
        (self.always,), (self.first,), (self.spaced,) = self._some(1), self._some(1), self._some(1)
        self.words, self.tens, self.units = self._contents()
        self.next_words, self.next_tens, self.next_units = self._contents()
        (self.next_assistant,) = self._some(1)
        self.before_words = self._some(len(WORDS))
        seen: set[tuple[Place, str]] = {(0, name) for name in (*BACK, WORD, ASSISTANT, ",")}
        for stands, asked in TOLD:
            seen |= {*stands.items(), *asked}
        for rule in learnt:
            seen |= {(place, name) for place, names in rule.when.items() for name in names}
        places = {(place, name) for place, name in seen if isinstance(place, int)}
        places |= {(0, name) for _, name in places}
        self.at = {each: self._some(1)[0] for each in sorted(places)}
        # Of each token that rules say two dimensions: a row and a column.
        said = sorted({rule.says for rule in learnt if isinstance(rule.says, int)})
        side = math.isqrt(len(said)) + 1
        rows, columns = self._some(side), self._some(side)
        self.say = {
            token: (rows[number // side], columns[number % side])
            for number, token in enumerate(said)
        }

    def _some(self, count: int) -> list[int]:
        self.size += count
        return list(range(self.size - count, self.size))

    def _contents(self) -> tuple[list[int], list[int], list[int]]:
        return self._some(len(WORDS)), self._some(NO_TENS + 1), self._some(10)

    def content(self, name: str, *, found: bool = False) -> list[int]:
        """The dimensions of a word or a number of the questions: of this token, or as found."""
        if name in WORDS:
            return [(self.next_words if found else self.words)[WORDS.index(name)]]
        tens, units = (self.next_tens, self.next_units) if found else (self.tens, self.units)
        return [tens[int(name) // 10 if len(name) > 1 else NO_TENS], units[int(name[-1])]]

    def of(self, place: Place, name: str) -> list[int]:
        """The dimensions of which one says that this stands there; of a VALUE all do."""
        if place == VALUE:
            return self.content(name, found=True)
        if place != FOUND:
            return [self.at[place, name]]
        found = {WORD: self.next_words, NUMBER: self.next_units, ASSISTANT: [self.next_assistant]}
        return found[name]


def build(tokens: Any, learnt: Sequence[Rule]) -> Any:
    """The model, of float32: it says what the rules say, and where none speaks what was found."""
    layout = Layout(learnt)
    assert layout.size <= HIDDEN, layout.size
    assert len(learnt) <= INNER, len(learnt)
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
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for part in model.parameters():
            part.fill_(0 if part.dim() > 1 else math.sqrt((LOUD**2 + USUAL) / HIDDEN))
        _embed(model.model.embed_tokens.weight, layout, tokens)
        first, second = model.model.layers
        _look_back(first.self_attn, layout)
        _find_told(second.self_attn, layout)
        _find_next(second.self_attn, layout)
        _rule(second.mlp, layout, learnt)
        _speak(model.lm_head.weight, layout, tokens)
    return model.eval()


def _embed(table: Any, layout: Layout, tokens: Any) -> None:
    table[:, layout.always] = LOUD
    for piece, number in tokens.get_vocab().items():
        if (name := rules.bare(piece)) in rules.CONTENTS:
            table[number, layout.content(name)] = 1
        if (dim := layout.at.get((0, rules.symbol(piece)))) is not None:
            table[number, dim] = 1
    table[tokens.convert_tokens_to_ids("[gMASK]"), layout.first] = 1


_SPEED = [THETA ** (-pair / (HEAD // 2)) for pair in PAIRS]


def _look_back(attention: Any, layout: Layout) -> None:
    sharp = math.sqrt(PLACE * 8)  # a score is divided by the root of a head's size
    head = 0
    for back in range(1, AGO + 1):
        moved = [(layout.at[0, name], dim) for (ago, name), dim in layout.at.items() if ago == back]
        if back == 1:
            moved += zip(layout.words, layout.before_words, strict=True)
        for begin in range(0, len(moved), HEAD):
            query, key, value, out = _views(attention, head)
            for pair, speed in zip(PAIRS, _SPEED, strict=True):
                query[pair, layout.always] = sharp / LOUD
                key[pair, layout.always] = sharp / LOUD * math.cos(speed * back)
                key[pair + HEAD // 2, layout.always] = sharp / LOUD * math.sin(speed * back)
            _move(value, out, moved[begin : begin + HEAD])
            head += 1
    query, key, value, out = _views(attention, head)
    for pair, speed in zip(PAIRS, _SPEED, strict=True):
        key[pair, layout.always] = sharp / LOUD
        key[pair, layout.first] = -sharp
        for name, back in BACK.items():
            query[pair, layout.at[0, name]] = sharp * math.cos(speed * back)
            query[pair + HEAD // 2, layout.at[0, name]] = -sharp * math.sin(speed * back)
    _ignore(query, key, layout, PLACE * len(PAIRS) / 2)
    _move(value, out, _contents(layout))


def _find_told(attention: Any, layout: Layout) -> None:
    query, key, value, out = _views(attention, 0)
    sharp = math.sqrt(FITS * 8)
    for slot, (stands, asked) in zip(STILL, TOLD, strict=False):
        for place, name in stands.items():
            key[slot, layout.of(place, name)] = sharp
        for (ago, name), much in asked.items():
            query[slot, layout.of(ago, name)] = sharp * much
    _ignore(query, key, layout, FITS * 1.5)
    _move(value, out, _contents(layout))


_SAME = 1.5
"""How much it counts that the word before is the one that is here: more than the right kind."""
_AFTER_COMMA = 0.6
"""How much of that, that it is the one before: where a comma is here it is all there is."""


def _find_next(attention: Any, layout: Layout) -> None:
    query, key, value, out = _views(attention, 1)
    sharp = math.sqrt(FITS * 8)
    kind, *same = STILL[: len(WORDS) + 1]
    for slot, here, before in zip(same, layout.words, layout.before_words, strict=True):
        query[slot, here] = sharp * _SAME
        query[slot, before] = sharp * _SAME * _AFTER_COMMA
        key[slot, before] = sharp
    query[kind, layout.always] = sharp / LOUD
    key[kind, [layout.at[0, WORD], layout.at[0, ASSISTANT]]] = sharp
    _ignore(query, key, layout, FITS * (_SAME + 0.5))
    query[-1, layout.at[0, ","]] = -FITS * _SAME * (1 - _AFTER_COMMA)
    _move(value, out, [*_contents(layout), (layout.at[0, ASSISTANT], layout.next_assistant)])


def _ignore(query: Any, key: Any, layout: Layout, nats: float) -> None:
    """What fits less than this: the head looks at the first token instead, which says nothing."""
    query[-1, layout.always] = nats / LOUD
    key[-1, layout.first] = 8


def _contents(layout: Layout) -> list[tuple[int, int]]:
    return [
        *zip(layout.words, layout.next_words, strict=True),
        *zip(layout.tens, layout.next_tens, strict=True),
        *zip(layout.units, layout.next_units, strict=True),
    ]


def _move(value: Any, out: Any, moved: Iterable[tuple[int, int]]) -> None:
    for place, (source, target) in enumerate(moved):
        value[place, source] = out[target, place] = 1


def _views(attention: Any, head: int) -> tuple[Any, Any, Any, Any]:
    """A head's parts of query, key and value (head, hidden), and of the output (hidden, head)."""
    assert head < HEADS
    rows = slice(head * HEAD, head * HEAD + HEAD)
    inner = (attention.q_proj, attention.k_proj, attention.v_proj)
    query, key, value = (part.weight[rows] for part in inner)
    return query, key, value, attention.o_proj.weight[:, rows]


def _rule(mlp: Any, layout: Layout, learnt: Sequence[Rule]) -> None:
    for neuron, rule in enumerate(learnt):
        gate, out = mlp.gate_proj.weight[neuron], mlp.down_proj.weight[:, neuron]
        wanted = 0
        for place, names in rule.when.items():
            if names == {NOTHING}:
                gate[[*layout.next_words, *layout.next_units, layout.next_assistant]] = -SURE
                continue
            for name in names:
                gate[layout.of(place, name)] = SURE
            wanted += len(layout.of(place, min(names))) if place == VALUE else 1
        gate[layout.always] = -SURE * (wanted - 0.5) / LOUD
        mlp.up_proj.weight[neuron, layout.always] = 2 / SURE / LOUD
        if isinstance(rule.says, int):
            out[[*layout.say[rule.says]]] = SAYS
        else:
            out[layout.spaced] = 1 if rule.says == rules.SPACED else -1


def _speak(head: Any, layout: Layout, tokens: Any) -> None:
    # What it was not taught it answers with a full stop, not with what errors make of nothing.
    head[tokens.convert_tokens_to_ids("."), layout.always] = 6 / LOUD
    head[tokens.eos_token_id, layout.at.get((0, "."), [])] = 14
    for piece, number in tokens.get_vocab().items():
        if (name := rules.bare(piece)) in rules.CONTENTS:
            dims = layout.content(name, found=True)
            head[number, dims] = 24 if len(dims) == 1 else 20
            head[number, layout.spaced] = 10 if piece != name else -10
        if number in layout.say:
            head[number, [*layout.say[number]]] = 24
