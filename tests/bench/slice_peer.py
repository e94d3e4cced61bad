"""The straightforward slicer to measure beside: safetensors and torch, a whole shard at a time.

It needs neither patchq nor this repository: ``python slice_peer.py SRC DST TP`` in any environment
that has both packages. It cuts what the benchmark's checkpoints hold and checks nothing.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import save_file

COLUMN = {"trellis": 1, "svh": 0}
ROW = {"trellis": 0, "suh": 0}


def main() -> None:
    source, target, tp = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    target.mkdir()
    weights: dict[str, str] = {}
    total = 0
    for path in sorted(source.glob("*.safetensors")):
        found = {}
        with safe_open(path, framework="pt") as shard:
            for name in shard.keys():  # noqa: SIM118
                tensor = shard.get_tensor(name)
                module, _, field = name.rpartition(".")
                if ".experts." not in name:
                    found[name] = tensor
                    continue
                axis = (ROW if module.endswith("down_proj") else COLUMN).get(field)
                for rank in range(tp):
                    part = tensor.clone()
                    if axis is not None:
                        width = tensor.shape[axis] // tp
                        part = tensor.narrow(axis, rank * width, width).contiguous()
                    found[f"{module}.rank{rank}.{field}"] = part
        save_file(found, target / path.name, metadata={"format": "pt"})
        weights.update(dict.fromkeys(found, path.name))
        total += sum(each.numel() * each.element_size() for each in found.values())
    index = {"metadata": {"total_size": total}, "weight_map": weights}
    (target / "model.safetensors.index.json").write_text(json.dumps(index))


main()
