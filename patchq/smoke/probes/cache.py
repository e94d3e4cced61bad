"""The prefix cache: it is used, and what comes from it is right."""

from __future__ import annotations

from patchq.smoke import metrics as names
from patchq.smoke import questions as q
from patchq.smoke.asking import NOT_THINKING, Asking, excerpt
from patchq.smoke.model import NotRun, Wrong
from patchq.smoke.probes.template import tokenized
from patchq.smoke.report import Probe
from patchq.smoke.stream import Reply

BLOCK = 16
"""vLLM's own, where the server does not say."""
BLOCKS = 4.5
"""Length of a long prompt, in blocks: four are full."""
LEAST = 400
"""Tokens of it, where blocks are small."""
SENTENCE = 10
"""Tokens of one, about."""
PREFIXES = 3
_DIGITS = 5
"""Of a block's length, at most: longer ones are no lengths."""


def _cache(asking: Asking) -> str:
    (code,) = asking.values.codes("cache", 1)
    prompt = _prompt(asking, "cache", code)
    cold, _ = _counted(asking, prompt)
    asking.expect(cold, code)
    warm, cached = _counted(asking, prompt)
    _equal(cold, warm)
    return _enough(asking, warm.prompt_tokens, cached)


def _prefixes(asking: Asking) -> str:
    codes = asking.values.codes("prefixes", PREFIXES)
    prompts = [_prompt(asking, f"prefix {number}", code) for number, code in enumerate(codes)]
    cold = asking.together(asking.user, prompts)
    before = asking.client.metrics().total(names.CACHE_HITS)
    warm = asking.together(asking.user, prompts)
    after = asking.client.metrics().total(names.CACHE_HITS)
    for first, second, code in zip(cold, warm, codes, strict=True):
        asking.expect(first, code)
        _equal(first, second)
    tokens = sum(reply.prompt_tokens or 0 for reply in warm)
    return _enough(asking, tokens, _cached(warm, before, after))


def _blocks(asking: Asking) -> str:
    size = _block(asking)
    codes = asking.values.codes("blocks", 3)
    lengths = []
    for offset, code in zip((-1, 0, 1), codes, strict=True):
        # Each has a mark of its own, so that it is cold whatever was asked before.
        tokens = _tokens(asking, _prompt(asking, f"block {offset}", code))
        length = (len(tokens) - 1) // size * size + offset
        if length < 2 * size - 1:
            raise NotRun(f"a prompt of {len(tokens)} tokens is too short for blocks of {size}")
        lengths.append(length)
        cut = _cut(tokens, length)
        cold, warm = asking.complete(cut), asking.complete(cut)
        try:
            asking.expect(cold, code)
            _equal(cold, warm)
        except Wrong as wrong:
            raise Wrong(f"at {length} tokens, with blocks of {size}: {wrong}") from None
    asking.evidence.update(block_size=size, lengths=lengths)
    return f"right at {', '.join(map(str, lengths))} tokens, cold and warm"


def _tokens(asking: Asking, prompt: str) -> list[int]:
    body = {
        "model": asking.setting.about.model,
        "messages": [{"role": "user", "content": prompt}],
        "add_generation_prompt": True,
        "chat_template_kwargs": dict(NOT_THINKING),
    }
    return tokenized(asking, body)


def _cut(tokens: list[int], length: int) -> list[int]:
    """Taken out of the middle, where nothing but filler stands."""
    out = len(tokens) - length
    begin = (len(tokens) - out) // 2
    return [*tokens[:begin], *tokens[begin + out :]]


def _prompt(asking: Asking, what: str, code: str) -> str:
    wanted = max(LEAST, int(BLOCKS * _block(asking)))
    context = asking.setting.about.context
    if context and wanted > context // 2:
        wanted = context // 2
    return q.long(asking.values.mark(what), code, wanted // SENTENCE)


def _block(asking: Asking) -> int:
    """Tokens of a block, as /metrics has it."""
    told = asking.client.metrics().label(names.CACHE_CONFIG, "block_size") or ""
    fits = told.isascii() and told.isdecimal() and len(told) <= _DIGITS
    return (int(told) if fits else 0) or BLOCK


def _counted(asking: Asking, prompt: str) -> tuple[Reply, float | None]:
    before = asking.client.metrics().total(names.CACHE_HITS)
    reply = asking.user(prompt)
    after = asking.client.metrics().total(names.CACHE_HITS)
    return reply, _cached([reply], before, after)


def _cached(replies: list[Reply], before: float | None, after: float | None) -> float | None:
    """Tokens from the cache: by the answers' own usage, else by the server's counter."""
    told = [reply.cached_tokens for reply in replies if reply.cached_tokens is not None]
    if len(told) == len(replies):
        return float(sum(told))
    return None if before is None or after is None else after - before


def _equal(cold: Reply, warm: Reply) -> None:
    if cold.content != warm.content:
        raise Wrong(
            f"with a warm cache it answers {excerpt(warm.content)}, cold {excerpt(cold.content)}"
        )


def _enough(asking: Asking, tokens: int | None, cached: float | None) -> str:
    least = asking.setting.bounds.cached_share
    if cached is None or not tokens:
        raise NotRun(
            "neither usage nor /metrics says what came from the cache; serve with"
            " --enable-prompt-tokens-details"
        )
    asking.evidence.update(prompt_tokens=tokens, cached_tokens=cached, least=least)
    if cached / tokens < least:
        raise Wrong(
            f"{cached:g} of {tokens} tokens came from the cache ({cached / tokens:.0%});"
            f" {least:.0%} are wanted"
        )
    return f"{cached:g} of {tokens} tokens from the cache, and the same answer"


PROBES = (
    Probe(
        "cache",
        "a long prompt, twice",
        "both answers are right and equal, and the second's prompt comes from the cache to the"
        " profile's share",
        "a cache that is dropped (vLLM #54163) or corrupt (vLLM #53912, #43559)",
        _cache,
        alone=True,
    ),
    Probe(
        "blocks",
        "prompts one token short of a block's end, at it, and beyond it, each twice",
        "all answers are right, cold and warm",
        "NaN at a page boundary, then repetition (vLLM #57605)",
        _blocks,
        alone=True,
    ),
    Probe(
        "prefixes",
        "three long prompts at the same time, twice",
        "as cache, for each",
        "prompts that are read together leave nothing in the cache (REE known issue)",
        _prefixes,
        alone=True,
    ),
)
