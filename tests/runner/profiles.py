"""The servers that the tests of the series share, by name. Each costs a start at each release."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

_GLM = (
    *("--reasoning-parser", "glm45", "--enable-auto-tool-choice", "--tool-call-parser", "glm47"),
    "--trust-request-chat-template",
)


@dataclass(frozen=True)
class Profile:
    """How a server is started: with the series or without it, and its flags."""

    patched: bool
    flags: tuple[str, ...] = ()


REASONING_CAP = 40
_SPIN = {
    "max_reasoning_tokens": REASONING_CAP,
    "end_reasoning_loops": True,
    "no_stop_in_reasoning": True,
    "no_thought_in_content": True,
}
SPIN_FLAGS = (
    *("--reasoning-config", json.dumps(_SPIN)),
    *("--default-repetition-detection", json.dumps({"max_pattern_size": 10, "min_count": 4})),
)
GUARDS_SPIN: tuple[str, ...] = SPIN_FLAGS
GUARDS_TRUTH: tuple[str, ...] = ("--progress-timeout", "5", "--require-requested-backends")
GUARDS = (*GUARDS_SPIN, *GUARDS_TRUTH)
"""Every guard of the series that does not change what the others do."""

EFFORTS = Path(__file__).parent / "templates" / "efforts.jinja"
"""A template as GLM-5.3's: it knows low and high, and everything else is the highest effort."""

_ANSWERS = (
    *_GLM,
    "--enable-prompt-tokens-details",
    # Blocks that a small context has several of.
    *("--block-size", "32"),
)
ANSWERS = (
    *_ANSWERS,
    # The thought says the stop string: without this the stock behaviour fails `stop-in-thought`.
    *("--reasoning-config", json.dumps({"no_stop_in_reasoning": True})),
)
"""For the model that answers the probes (tests/support/answering.py)."""
GUARDED_ANSWERS = (*_ANSWERS, *SPIN_FLAGS)
"""The same, and with what ends a thought that goes round."""

_ALARM = ("--min-draft-acceptance", "0.3")
_NGRAM = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4}

PROFILES = {
    # What the guards are measured against: the release as it is.
    "stock": Profile(patched=False, flags=_GLM),
    # Patched, and no flag given.
    "plain": Profile(patched=True, flags=_GLM),
    "guards": Profile(patched=True, flags=(*_GLM, *GUARDS)),
    "speculative": Profile(
        patched=True, flags=(*_GLM, *GUARDS, *_ALARM, "--speculative-config", json.dumps(_NGRAM))
    ),
    # Another template, which is expected, and a backend that a CPU does not have.
    "truth": Profile(
        patched=True,
        flags=(
            *_GLM,
            *("--chat-template", str(EFFORTS)),
            *("--expect-chat-template-sha256", sha256(EFFORTS.read_bytes()).hexdigest()),
            "--refuse-unknown-reasoning-effort",
            *("--attention-backend", "TRITON_ATTN"),
        ),
    ),
}
