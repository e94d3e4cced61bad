"""Run by a runner environment's Python: the EXL3 layers of the series, without an engine.

    python exl3_layers.py FOLDER

FOLDER has what tests/runner/test_exl3_layers.py wrote; the line RESULT has what was found.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from vllm.config.load import LoadConfig
from vllm.model_executor.layers.quantization.exl3 import (
    checkpoint,
    config,
    experts,
    loading,
    ranks,
    weight,
)
from vllm.model_executor.model_loader import weight_utils
from vllm.model_executor.model_loader.default_loader import DefaultModelLoader

CPU = torch.device("cpu")


def weights(folder: Path) -> dict[str, weight.Exl3Weight]:
    """Every module of the checkpoint, not finished."""
    tensors = {}
    for path in sorted(folder.glob("*.safetensors")):
        tensors.update(load_file(path))
    found = {}
    for name, module in checkpoint.read_checkpoint(str(folder)).modules.items():
        found[name] = made = weight.Exl3Weight(name, module.matrix(0))
        for field, stored in made.wanted().items():
            made.take(field, tensors[stored], CPU)
    return found


def products(folder: Path, inputs: dict[str, torch.Tensor], limit: int | None) -> dict[str, Any]:
    """Of each module with its input, kept decoded (`limit` None) or decoded on use (0)."""
    weight.decoded().limit = limit
    found = {}
    for name, made in weights(folder).items():
        made.finish(torch.float32)
        assert (made.decoded is None) == (limit == 0), name
        whole = weight.Exl3Parts(name, [made], made.out_features)
        found[name] = whole(inputs[name].float()).double()
    return found


def farthest(found: dict[str, Any], wanted: dict[str, torch.Tensor]) -> float:
    """The largest difference of a product, in shares of the largest of its module."""
    assert found.keys() == wanted.keys()
    return max(
        float((found[name] - wanted[name].double()).abs().max() / wanted[name].abs().max())
        for name in wanted
    )


def layers(folder: Path) -> dict[str, float]:
    """The checkpoint in FOLDER/model against FOLDER/expected.safetensors."""
    expected = load_file(folder / "expected.safetensors")
    inputs = {k.removesuffix(".x"): v for k, v in expected.items() if k.endswith(".x")}
    wanted = {k.removesuffix(".y"): v for k, v in expected.items() if k.endswith(".y")}
    return {
        way: farthest(products(folder / "model", inputs, limit), wanted)
        for way, limit in (("kept", None), ("on use", 0))
    }


def kept_dense(folder: Path) -> float:
    """The same modules in a model that has nothing but a parameter where they belong."""
    expected = load_file(folder / "expected.safetensors")
    model = torch.nn.Module()
    model.quant_config = config.Exl3Config.from_config({})
    model.quant_config.maybe_update_config(str(folder / "model"))
    place = model
    for name in ("model", "layers", "0"):
        place.add_module(name, torch.nn.Module())
        place = place.get_submodule(name)
    place.norm = torch.nn.Parameter(torch.zeros(1))
    tensors = load_file(folder / "model" / "model.safetensors")
    found = dict(loading.load_exl3_weights(tensors.items(), model))
    assert torch.equal(
        found.pop("model.layers.0.biased.bias"), tensors["model.layers.0.biased.bias"]
    )
    products, wanted = {}, {}
    for name in found.keys() - tensors.keys():
        dense = found[name]
        module = name.removesuffix(".weight")
        products[module] = expected[f"{module}.x"] @ dense.float().t()
        wanted[module] = expected[f"{module}.y"]
    assert 2 * len(wanted) == len(expected)
    return farthest(products, wanted)


def mixture(folder: Path) -> float:
    """Experts of FOLDER/moe, computed and written out."""
    weight.decoded().limit = None
    made = weights(folder / "moe")
    for each in made.values():
        each.finish(torch.float32)
    count = 1 + max(int(name.split(".")[5]) for name in made if ".experts." in name)
    parts = [
        [made[f"model.layers.1.mlp.experts.{e}.{p}_proj"] for e in range(count)]
        for p in ("gate", "up", "down")
    ]
    layer = experts.Exl3Experts("moe", *parts, "silu", limit=0.5)
    torch.manual_seed(0)
    x = torch.randn(7, parts[0][0].in_features) / 4
    logits = torch.randn(7, count)
    chosen, ids = experts.route(logits, 2, True, "sigmoid", torch.zeros(count))
    wanted = torch.zeros_like(x)
    for row in range(7):
        scores = logits[row].sigmoid()
        best = scores.topk(2)[1].tolist()
        assert sorted(best) == sorted(ids[row].tolist())
        for expert in best:
            gate, up, down = (part[expert].decoded.t() for part in parts)
            middle = torch.nn.functional.silu((x[row] @ gate).clamp(max=0.5))
            middle = middle * (x[row] @ up).clamp(-0.5, 0.5)
            wanted[row] += scores[expert] / scores[best].sum() * (middle @ down)
    return float((layer(x, chosen, ids) - wanted).abs().max() / wanted.abs().max())


class Opened:
    """vLLM's own reading, counted: which files, and how many bytes of which tensors."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self._open = weight_utils.safe_open
        weight_utils.safe_open = self

    def __call__(self, path: str, *args: Any, **options: Any) -> Any:
        self.files.append(Path(path).name)
        return self._open(path, *args, **options)


def reading(folder: Path, rank: int) -> dict[str, Any]:
    """What rank `rank` opens and takes of the checkpoint in `folder`."""
    opened = Opened()
    ranks.tensor_parallel_rank = loading.tensor_parallel_rank = lambda: rank
    loader = DefaultModelLoader(LoadConfig(use_tqdm_on_load=False))
    source = DefaultModelLoader.Source(str(folder), None)
    found = loading.load_exl3_weights(loader._get_weights_iterator(source), torch.nn.Module())
    names = {name: tensor.nbytes for name, tensor in found}
    weight_utils.safe_open = opened._open
    return {"files": sorted(opened.files), "tensors": names}


def main(folder: Path) -> None:
    found: dict[str, Any] = {"layers": layers(folder), "experts": mixture(folder)}
    found["layers"]["dense"] = kept_dense(folder)
    found["reading"] = {
        layout: [reading(folder / layout / str(rank), rank) for rank in range(2)]
        for layout in ("shared", "per-rank")
    }
    reference = folder / "reference"
    found["exllamav3"] = {
        path.name: layers(path) for path in sorted(reference.glob("*")) if path.is_dir()
    }
    print("RESULT " + json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
