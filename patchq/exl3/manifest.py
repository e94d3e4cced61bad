"""The JSON files of the result: config, quantization config, index, bits, manifest.

`rank_sliced` and `hybrid_tr3_tail` have the fields that the existing loader asks for (format, bits,
codebook, experts_per_layer, moe_layers, tensor_schema, tp, and its newer trellis_bits_by_layer,
k_values, bits_per_expert, rotation_layout, shared_h_tensor_schema); `layout` and `uneven` are
ours. `rank_sliced_modules` lists every cut layer for readers that want more than routed experts.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchq.exl3.checkpoint import CONFIG, QUANTIZATION, read_json
from patchq.exl3.headers import BadFile
from patchq.exl3.layout import LAYOUTS, Layout
from patchq.exl3.model import DEFAULT_CODEBOOK, Module, Plan
from patchq.exl3.modules import EXPERT
from patchq.exl3.summary import LAYER, Summary

MANIFEST = "rank-slice-manifest.json"
BITS_FILE = "rank-slice-bits.json"
SCHEMA = "patchq.rank-slice/1"
FORMAT = "exl3-trellis"
ROUTED = "model.layers.{L}.mlp.experts.{E}.{proj}.rank{r}."
SHARED_ROUTED = "model.layers.{L}.mlp.experts.shared_h.{proj}.rank{r}.{suh|svh}"
DENSE = "{module}.rank{r}."


@dataclass(frozen=True)
class FileEntry:
    """A shard of the result; `rank` None: every rank reads it."""

    file: str
    rank: int | None
    size: int
    header_sha256: str


@dataclass(frozen=True)
class Manifest:
    """rank-slice-manifest.json."""

    tp: int
    layout: Layout
    uneven: bool
    files: tuple[FileEntry, ...]
    groups: tuple[Mapping[str, Any], ...]
    """Layers that are cut alike: modules (pattern), count, k, n, bits, codebook, split, ranges."""
    raw: Mapping[str, Any]


def read(root: Path) -> Manifest:
    """The manifest of the result in `root`. Raises BadFile."""
    raw = read_json(root / MANIFEST)
    try:
        if raw["schema"] != SCHEMA or raw["layout"] not in LAYOUTS or type(raw["tp"]) is not int:
            raise ValueError
        files = tuple(
            FileEntry(name, entry["rank"], entry["size"], entry["header_sha256"])
            for name, entry in raw["files"].items()
        )
        groups = tuple(raw["groups"])
        return Manifest(raw["tp"], raw["layout"], raw["uneven"] is True, files, groups, raw)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise BadFile(f"{MANIFEST} is none that patchq wrote ({SCHEMA})", "cut it again") from None


def small_files(
    plan: Plan, summary: Summary, layout: Layout, files: Iterable[FileEntry]
) -> dict[str, Any]:
    """The JSON documents but for the index, by file name."""
    metadata = rank_metadata(plan, summary, layout)
    documents: dict[str, Any] = {}
    if metadata.get("bits_per_expert"):
        documents[BITS_FILE] = _expert_bits(_routed(plan))
    config = dict(plan.checkpoint.config)
    if summary.routed:
        config["hybrid_tr3_tail"] = metadata
    quantization = {
        key: value for key, value in plan.checkpoint.quantization.items() if key != "tensor_storage"
    }
    inside = config.get("quantization_config")
    embedded = dict(inside) if isinstance(inside, dict) else dict(quantization)
    embedded.pop("tensor_storage", None)
    config["quantization_config"] = embedded | {"rank_sliced": metadata}
    documents[CONFIG] = config
    documents[QUANTIZATION] = quantization | {
        "rank_sliced": metadata,
        "rank_sliced_modules": module_groups(plan),
    }
    documents[MANIFEST] = _manifest(summary, layout, metadata, files)
    return documents


def rank_metadata(plan: Plan, summary: Summary, layout: Layout) -> dict[str, Any]:
    """`rank_sliced` and `hybrid_tr3_tail`."""
    routed = _routed(plan)
    told: Iterable[Module] = routed or plan.modules.values()
    codebooks = sorted({module.codebook for module in told})
    bits = sorted({module.bits for module in told})
    codebook = codebooks[0] if len(codebooks) == 1 else "mixed"
    metadata: dict[str, Any] = {
        "format": FORMAT,
        "tp": plan.tp,
        "layout": layout,
        "uneven": plan.uneven,
        "codebook": codebook,
        "bits": bits[0] if len(bits) == 1 else "mixed",
        "tensor_schema": _tensor_schema(routed, codebooks),
    }
    version = plan.checkpoint.quantization.get("version")
    if version is not None:
        metadata["exllamav3_version"] = version
    if len(bits) > 1:
        metadata["k_values"] = bits
    if routed:
        metadata |= _routed_metadata(routed, summary, mixed=len(bits) > 1)
    return metadata


def _routed_metadata(routed: list[Module], summary: Summary, *, mixed: bool) -> dict[str, Any]:
    layers = summary.moe_layers
    found: dict[str, Any] = {
        "experts_per_layer": max(summary.experts),
        "moe_layers": [layers[0], layers[-1]] if layers else [],
    }
    if layers and list(layers) != list(range(layers[0], layers[-1] + 1)):
        found["moe_layer_list"] = list(layers)
    if len(summary.experts) > 1:
        found["experts_by_layer"] = _experts_by_layer(routed)
    if summary.shared_vectors:
        found["rotation_layout"] = "shared_h_v1"
        found["shared_h_tensor_schema"] = SHARED_ROUTED
    by_layer: dict[int, set[int]] = defaultdict(set)
    for module in routed:
        by_layer[_layer(module)].add(module.bits)
    if all(len(each) == 1 for each in by_layer.values()):
        found["trellis_bits_by_layer"] = {
            str(layer): next(iter(each)) for layer, each in sorted(by_layer.items())
        }
        if mixed:
            # "mixed" means mixed within a layer to the loader, which then asks for a file.
            found["bits"] = round(summary.average_bits, 6)
    elif _expert_bits(routed):
        found["bits_per_expert"] = f"{BITS_FILE}:k"
    return found


def _routed(plan: Plan) -> list[Module]:
    return [
        module
        for name, module in plan.modules.items()
        if module.experts is not None or EXPERT.fullmatch(name)
    ]


def _layer(module: Module) -> int:
    found = LAYER.search(f"{module.name}.")
    return int(found[1]) if found else -1


def _tensor_schema(routed: Iterable[Module], codebooks: list[str]) -> str:
    markers = "".join(f"|{name}" for name in codebooks if name != DEFAULT_CODEBOOK)
    names = [EXPERT.fullmatch(module.name) for module in routed]
    usual = names and all(
        name
        and name[1].endswith(".mlp.experts")
        and name[3] in ("gate_proj", "up_proj", "down_proj")
        for name in names
    )
    return f"{ROUTED if usual else DENSE}{{trellis|suh|svh{markers}}}"


def _experts_by_layer(routed: Iterable[Module]) -> dict[str, int]:
    found: dict[int, set[str]] = defaultdict(set)
    fused: dict[int, int] = {}
    for module in routed:
        place = EXPERT.fullmatch(module.name)
        if place:
            found[_layer(module)].add(place[2])
        elif module.experts is not None:
            fused[_layer(module)] = module.experts
    counts = {layer: len(each) for layer, each in found.items()} | fused
    return {str(layer): count for layer, count in sorted(counts.items())}


def _expert_bits(routed: Iterable[Module]) -> dict[str, dict[str, list[int]]]:
    """Bits of each expert of each layer; empty where an expert's projections differ."""
    found: dict[int, dict[int, int]] = defaultdict(dict)
    for module in routed:
        place = EXPERT.fullmatch(module.name)
        if place is None:
            return {}
        experts = found[_layer(module)]
        if experts.setdefault(int(place[2]), module.bits) != module.bits:
            return {}
    return {
        str(layer): {"k": [bits for _, bits in sorted(experts.items())]}
        for layer, experts in sorted(found.items())
    }


def module_groups(plan: Plan) -> list[dict[str, Any]]:
    """Every cut layer, those that are cut alike together."""
    groups: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    for name, module in plan.modules.items():
        cut = plan.cuts[name]
        groups[module.k, module.n, module.bits, module.codebook, module.experts, cut].append(name)
    return [
        {
            "in_features": k,
            "out_features": n,
            "bits": bits,
            "codebook": codebook,
            "stacked_experts": experts,
            "split": cut.split,
            "ranges": cut.ranges,
            "modules": names,
        }
        for (k, n, bits, codebook, experts, cut), names in groups.items()
    ]


def _manifest(
    summary: Summary, layout: Layout, metadata: dict[str, Any], files: Iterable[FileEntry]
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "layout": layout,
        **metadata,
        "source_shards": summary.shards,
        "source_tensors": summary.tensors,
        "source_tensor_bytes": summary.bytes_source,
        "output_tensor_bytes": summary.bytes_result,
        "files": {
            entry.file: {
                "rank": entry.rank,
                "size": entry.size,
                "header_sha256": entry.header_sha256,
            }
            for entry in files
        },
        "groups": [
            {
                "modules": group.pattern,
                "count": group.count,
                "k": group.k,
                "n": group.n,
                "bits": group.bits,
                "codebook": group.codebook,
                "split": group.cut.split if group.cut else None,
                "ranges": group.cut.ranges if group.cut else None,
            }
            for group in summary.groups
        ],
    }


def dump(document: Any, *, indent: int | None = 2) -> bytes:
    return (json.dumps(document, indent=indent, ensure_ascii=False) + "\n").encode("utf-8")
