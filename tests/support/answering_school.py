"""How the answering model is taught, and examined.

A network that has no rules yet reads the lessons: it shows what its heads find at each place. From
that and from what is to come the rules are learnt (answering_rules.py), and written into it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from tests.support import answering_net as net
from tests.support import answering_rules as rules
from tests.support import answering_talk as talk

Held = Mapping[str, Sequence[talk.Taught]]
Learnt = Mapping[str, Mapping[str, float]]
"""Of each kind of question, with thinking on or off: `right`, the share that is answered right to
the last token, and `margin`, by which the right token leads, at least, in nats."""

_LESSONS = 30
"""Of a kind, each with thinking on and off."""
_ASKED = 20
_FEWER = {"doors": 6, "long": 5}
"""Questions of a kind in an exam."""
_SIZES, _LARGEST = {"doors": 6, "long": 8}, {"doors": 20, "long": 120}
"""How many doors or sentences a lesson has at most, and a question of an exam."""
_AT_ONCE = 32


def taught(tokens: Any, seed: int, *, spin: bool) -> Any:
    """A model that answers; or one that spins while it thinks."""
    looking, layout = net.build(tokens, ()), net.Layout(())
    pieces = {number: piece for piece, number in tokens.get_vocab().items()}
    shown = []
    for part in _alike(list(_lessons(tokens, seed, spin=spin))):
        ids, _ = _batch(part, tokens.eos_token_id)
        with torch.no_grad():
            stream = looking.model(input_ids=ids, use_cache=False).last_hidden_state
        for (given, wanted), found in zip(part, stream, strict=True):
            names = [pieces[each] for each in given]
            for place, token in enumerate(wanted):
                if token != talk.SILENT:
                    there = _found(found[place].tolist(), layout)
                    shown.append(rules.seen(names, place, there, token, pieces[token]))
    return net.build(tokens, rules.learn(shown))


def _lessons(tokens: Any, seed: int, *, spin: bool) -> Iterator[talk.Taught]:
    draw = random.Random(seed)
    for kind in talk.KINDS:
        for number in range(_LESSONS):
            made = talk.lesson(kind, draw, _SIZES.get(kind, 0))
            for thinking in (False, True):
                # A thought that is ended goes on in the answer.
                yield talk.taught(tokens, made, thinking=thinking, spin=spin, cut=number)


def _found(stream: Sequence[float], layout: net.Layout) -> str:
    def at(dims: Sequence[int]) -> list[int]:
        return [place for place, dim in enumerate(dims) if stream[dim] > 0.5]

    words, tens, units = at(layout.next_words), at(layout.next_tens), at(layout.next_units)
    if stream[layout.next_assistant] > 0.5:
        return net.ASSISTANT
    if words:
        return net.WORDS[words[0]]
    if tens and units:
        return f"{tens[0] if tens[0] < net.NO_TENS else ''}{units[0]}"
    return rules.NOTHING


def exam(tokens: Any, seed: int) -> dict[str, list[talk.Taught]]:
    draw = random.Random(seed)
    return {
        f"{kind}, {'thinking' if thinking else 'not thinking'}": [
            talk.taught(tokens, talk.lesson(kind, draw, _LARGEST.get(kind, 0)), thinking=thinking)
            for _ in range(_FEWER.get(kind, _ASKED))
        ]
        for kind in talk.KINDS
        for thinking in (False, True)
    }


def spinning_exam(tokens: Any, seed: int) -> dict[str, list[talk.Taught]]:
    draw = random.Random(seed)
    return {
        kind: [
            talk.taught(tokens, talk.lesson(kind, draw, 8), thinking=True, spin=True)
            for _ in range(4)
        ]
        for kind in talk.KINDS
    }


def plain(held: Held) -> dict[str, Sequence[talk.Taught]]:
    """What is asked with thinking off."""
    return {kind: taught for kind, taught in held.items() if kind.endswith("not thinking")}


def learnt(model: Any, held: Held, tokens: Any) -> Learnt:
    """Read as the model would write it."""
    told = {}
    for kind, examples in held.items():
        margins = []
        for part in _alike(examples):
            ids, labels = _batch(part, tokens.eos_token_id)
            with torch.no_grad():
                logits = model(input_ids=ids, use_cache=False).logits
            asked = labels.clamp(min=0)[..., None]
            lead = logits.gather(-1, asked) - logits.scatter(-1, asked, -torch.inf).amax(-1, True)
            spoken = torch.where(labels == talk.SILENT, torch.inf, lead[..., 0])
            margins += spoken.amin(1).tolist()
        right = sum(margin > 0 for margin in margins) / len(margins)
        told[kind] = {"right": right, "margin": round(min(margins), 2)}
    return told


def _batch(examples: Sequence[talk.Taught], pad: int) -> tuple[Any, Any]:
    """Ids and labels, each (examples, longest); padded on the right."""
    longest = max(len(ids) for ids, _ in examples)
    ids = torch.full((len(examples), longest), pad)
    labels = torch.full((len(examples), longest), talk.SILENT)
    for row, (given, wanted) in enumerate(examples):
        ids[row, : len(given)] = torch.tensor(given)
        labels[row, : len(wanted)] = torch.tensor(wanted)
    return ids, labels


def _alike(examples: Sequence[talk.Taught]) -> list[list[talk.Taught]]:
    """Parts of about one length each, so that little is read that is padding alone."""
    parts: list[list[talk.Taught]] = []
    for each in sorted(examples, key=lambda example: -len(example[0])):
        last = parts[-1] if parts else [each] * _AT_ONCE
        if len(last) == _AT_ONCE or len(each[0]) < 0.7 * len(last[0][0]):
            parts.append([])
        parts[-1].append(each)
    return parts
