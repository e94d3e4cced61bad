"""The pins of the compiler that native code is tested with."""

from __future__ import annotations

import re
from pathlib import Path

PINS = Path(__file__).resolve().parents[1] / "ci" / "cuda-pins" / "13.0.txt"


def test_everything_is_pinned_by_hash_and_no_place_is_named() -> None:
    lines = PINS.read_text(encoding="utf-8").splitlines()
    form = r"[a-z-]+==[0-9.]+( --hash=sha256:[0-9a-f]{64}){2}"
    assert [line for line in lines if not re.fullmatch(form, line)] == []
    assert lines == sorted(lines)
    assert {"cmake", "ninja", "nvidia-cuda-nvcc"} <= {line.partition("==")[0] for line in lines}
