"""Long prompts, as far as the context goes: read whole, answered, and not spun over."""

from __future__ import annotations

from patchq.smoke import questions as q
from patchq.smoke.asking import NOT_THINKING, THOUGHTFUL, Asking
from patchq.smoke.model import LeftOut, NotRun, Wrong
from patchq.smoke.probes.cache import SENTENCE
from patchq.smoke.probes.template import tokenized
from patchq.smoke.report import Probe

LENGTHS = (1_000, 32_000, 128_000, 512_000)
"""Tokens of a prompt; beside them as many as the context has room for."""
ROOM = 8
"""The share of the context that is left for thought and answer is one of so many, at most."""
SLOWEST = 200.0
"""Tokens of a prompt that are read in a second, at least."""
_TRIED = 50
"""Sentences by which a sentence's tokens are counted."""


def lengths(context: int) -> tuple[int, ...]:
    """Tokens of the prompts, the shortest first."""
    most = context - room(context)
    return (*(each for each in LENGTHS if each < 0.95 * most), most)


def room(context: int) -> int:
    return min(THOUGHTFUL, context // ROOM)


def _long(asking: Asking) -> str:
    context = asking.setting.about.context
    if not context:
        raise LeftOut("the server does not say how long its context is")
    begin, each = _tokens(asking)
    read: list[int] = []
    asking.evidence["prompt_tokens"] = read
    for wanted in lengths(context):
        (code,) = asking.values.codes(f"long {wanted}", 1)
        sentences = max(0, int((wanted - begin) / each))
        prompt = q.long(asking.values.mark(f"long {wanted}"), code, sentences)
        waiting = asking.patient(asking.client.patience + wanted / SLOWEST)
        try:
            reply = waiting.user(prompt, thinking=True, max_tokens=room(context))
            asking.expect(reply, code)
        except Wrong as wrong:
            raise Wrong(f"at {wanted:,} tokens: {wrong}") from None
        except NotRun as missed:
            raise NotRun(f"at {wanted:,} tokens: {missed}") from None
        read.append(reply.prompt_tokens or wanted)
    return f"right, and ended by itself, at {', '.join(f'{count:,}' for count in read)} tokens"


def _tokens(asking: Asking) -> tuple[float, float]:
    """Tokens of a prompt without a sentence, and of each sentence, as the server counts them."""
    counts = []
    for sentences in (0, _TRIED):
        body = {
            "model": asking.setting.about.model,
            "messages": [{"role": "user", "content": q.long("", "", sentences)}],
            "add_generation_prompt": True,
            "chat_template_kwargs": dict(NOT_THINKING),
        }
        try:
            counts.append(len(tokenized(asking, body)))
        except NotRun:  # it has no /tokenize
            return float(SENTENCE), float(SENTENCE)
    # What marks, codes and the template with thinking on have more than that.
    return counts[0] + 4 * SENTENCE, (counts[1] - counts[0]) / _TRIED


PROBES = (
    Probe(
        "long",
        "a code in prompts of 1,000, 32,000, 128,000 and 512,000 tokens and of all that the"
        " context has room for, with thinking on",
        "the thought ends by itself and the answer is the code, at each length",
        "a crash around 500,000 tokens (vLLM #57227), an illegal access beyond 131,328 (Lvllm"
        " #109), spinning over a long prompt",
        _long,
        alone=True,
    ),
)
