"""What a doctor is shown in tests: loaders, drafters, templates; and what it says of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from patchq.doctor.capabilities import Capabilities
from patchq.doctor.model import Check
from tests.support.shards import write_safetensors

ALL = {
    "codebooks": ["3inst", "mcg", "mul1"],
    "bits": [1, 2, 3, 4, 5, 6, 7, 8],
    "layouts": ["plain", "shared", "per-rank"],
    "ranks": [1, 2, 4, 8],
}


def capabilities(**exl3: Any) -> bytes:
    """A patchq-capabilities.json that reads everything, but for what is given."""
    return json.dumps({"schema": "patchq.capabilities/1", "exl3": ALL | exl3}).encode()


def loader(**exl3: Any) -> Capabilities:
    said = ALL | exl3
    return Capabilities(
        "the runner",
        frozenset(said["codebooks"]),
        frozenset(said["bits"]),
        frozenset(said["layouts"]),
        frozenset(said["ranks"]),
        frozenset(said["forms"]) if "forms" in said else None,
    )


def runner(folder: Path, **exl3: Any) -> Path:
    """A folder in which a runner with that loader is installed."""
    (folder / "vllm").mkdir(parents=True)
    (folder / "vllm" / "patchq-capabilities.json").write_bytes(capabilities(**exl3))
    return folder


def states(checks: Iterable[Check]) -> dict[str, str]:
    """The state of each check by name, where none comes twice."""
    found = [(check.name, check.state) for check in checks]
    assert len(dict(found)) == len(found), found
    return dict(found)


def only(checks: Iterable[Check], state: str = "fatal") -> Check:
    """The one check of that state, in one sentence, with a remedy."""
    (found,) = [check for check in checks if check.state == state]
    assert found.says and "\n" not in found.says and not found.says.endswith("."), found
    return found


DFLASH2 = {
    "block_size": 8,
    "conv_kernel_size": 2,
    "conv_group_size": 16,
    "selector_rank": 8,
    "selector_top_k": 4,
    "mask_token_id": 3,
    "target_layer_ids": [0, 2],
}


def write_drafter(
    folder: Path,
    hidden: int = 64,
    vocabulary: int = 1024,
    layers: int = 4,
    config: dict[str, Any] | None = None,
    tensors: dict[str, tuple[int, ...]] | None = None,
    **dflash: Any,
) -> Path:
    """A DFlash2 drafter of a model with that many layers, as its maker publishes it."""
    inner = {key: value for key, value in (DFLASH2 | dflash).items() if value is not None}
    said = {
        "architectures": ["DFlash2DraftModel"],
        "model_type": "qwen3",
        "hidden_size": hidden,
        "vocab_size": vocabulary,
        "num_target_layers": layers,
        "dflash_config": inner,
    }
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(said | (config or {})))
    shapes = {"fc.weight": (hidden, 2 * hidden), "norm.weight": (hidden,)} | (tensors or {})
    made = {name: np.zeros(shape, "<f2") for name, shape in shapes.items()}
    write_safetensors(folder / "model.safetensors", made)
    return folder
