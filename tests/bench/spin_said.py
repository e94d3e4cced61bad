"""What models said, with and without loops (spin_said.json; made by spin_record.py).

Half 0: tiny models that were trained to answer the probes. Half 1: SmolLM2.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from tests.bench.spin_loops import Loop
from tests.bench.spin_record import BY

SAID = Path(__file__).parent / "spin_said.json"
_LEAST = 2000
HALVES = ("tiny", BY)


@lru_cache
def said() -> tuple[Mapping[str, Any], ...]:
    return tuple(json.loads(SAID.read_text(encoding="utf-8")))


def looping(half: int) -> Iterator[Loop]:
    for each in said():
        if each["by"] == HALVES[half] and each["loops"]:
            text, period = each["text"], each["loops"]["period"]
            if each["temperature"] == 0 and text[-period:] == text[-2 * period : -period]:
                # Always the likeliest token: what was recorded goes on.
                text += text[-period:] * (_LEAST // period)
            yield Loop(text, each["loops"]["begins"], period)


def sound_answers(half: int) -> Iterator[str]:
    for each in said():
        if each["by"] == HALVES[half] and not each["loops"]:
            yield each["text"]
