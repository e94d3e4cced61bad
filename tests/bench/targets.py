"""Checkpoints to measure the slicer on: a sparse one as large as the real target, a full one."""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from patchq.exl3 import checkpoint
from patchq.exl3.documents import write_documents
from patchq.exl3.families import load
from patchq.exl3.headers import render
from patchq.exl3.layout import Layout, lay_out
from patchq.exl3.manifest import FileEntry
from patchq.exl3.model import MARKERS
from patchq.exl3.plan import plan
from patchq.exl3.summary import summarize

Entry = tuple[str, str, tuple[int, ...], int]


@dataclass(frozen=True)
class Shape:
    """A MoE checkpoint: `layers` with `experts` each, of [hidden, inner], `bits` bits."""

    layers: int
    experts: int
    hidden: int
    inner: int
    bits: int
    shards: int
    plain: int
    """Bytes of unquantized tensors in each shard."""


TARGET = Shape(layers=43, experts=288, hidden=4096, inner=2048, bits=4, shards=92, plain=100 << 20)
"""The qualified target: 155,826,782,208 bytes of trellis."""


def entries(shape: Shape) -> Iterator[list[Entry]]:
    """The tensors of each shard, in the order in which safetensors writes them."""
    modules = [
        f"model.language_model.layers.{layer}.mlp.experts.{expert}.{name}"
        for layer in range(3, 3 + shape.layers)
        for expert in range(shape.experts)
        for name in ("gate_proj", "up_proj", "down_proj")
    ]
    for shard in range(shape.shards):
        low = len(modules) * shard // shape.shards
        high = len(modules) * (shard + 1) // shape.shards
        yield _shard(shape, shard, modules[low:high])


def _shard(shape: Shape, number: int, modules: list[str]) -> list[Entry]:
    found: list[Entry] = [(f"{name}.mcg", "I32", (), 4) for name in modules]
    plain = shape.plain // 16
    for part in range(16):
        name = f"model.language_model.layers.{number}.self_attn.part{part}.weight"
        found.append((name, "BF16", (plain // 2,), plain // 2 * 2))
    for name in modules:
        k, n = shape.hidden, shape.inner
        if name.endswith("down_proj"):
            k, n = n, k
        found.append((f"{name}.suh", "F16", (k,), 2 * k))
        found.append((f"{name}.svh", "F16", (n,), 2 * n))
    for name in modules:
        k, n = shape.hidden, shape.inner
        if name.endswith("down_proj"):
            k, n = n, k
        tiles = (k // 16, n // 16, 16 * shape.bits)
        found.append((f"{name}.trellis", "I16", tiles, k * n * shape.bits // 8))
    return found


def write(folder: Path, shape: Shape, *, full: bool, storage: bool = True) -> int:
    """Write such a checkpoint; `full`: with random bytes, else sparse (markers alone are there).

    Returns the bytes of its tensors.
    """
    folder.mkdir(parents=True)
    weights: dict[str, str] = {}
    total = 0
    listed: dict[str, object] = {}
    for number, tensors in enumerate(entries(shape), 1):
        file = f"model-{number:05}-of-{shape.shards:05}.safetensors"
        total += _write_shard(folder / file, tensors, full=full)
        weights.update((name, file) for name, *_ in tensors)
        if storage:
            listed |= _storage(tensors, shape.bits)
    index = {"metadata": {"total_size": total}, "weight_map": weights}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2))
    quantization = {"quant_method": "exl3", "version": "0.0.43", "bits": shape.bits}
    config = {"n_routed_experts": shape.experts, "quantization_config": quantization}
    (folder / "config.json").write_text(json.dumps(config))
    manifest = quantization | {"codebook": "mcg", "tensor_storage": listed}
    (folder / "quantization_config.json").write_text(json.dumps(manifest, indent=4))
    return total


def write_cut(folder: Path, source: Path, tp: int, layout: Layout) -> None:
    """What `slice run` would make of the checkpoint in `source`, sparse: headers and JSON alone."""
    folder.mkdir(parents=True)
    planned = plan(checkpoint.read(source), tp, load())
    jobs = [lay_out(planned, shard, layout) for shard in planned.checkpoint.shards]
    files = []
    for output in (output for job in jobs for output in job.outputs):
        with (folder / output.file).open("wb") as stream:
            stream.write(output.header)
            stream.truncate(output.size)
        digest = hashlib.sha256(output.header[8:]).hexdigest()
        files.append(FileEntry(output.file, output.rank, output.size, digest))
    outputs = {job.shard.file: job.outputs for job in jobs}
    write_documents(folder, planned, summarize(planned), layout, files, outputs)


def _storage(tensors: Iterable[Entry], bits: int) -> dict[str, object]:
    """What exllamav3 lists of each layer in quantization_config.json."""
    listed: dict[str, dict[str, object]] = {}
    for name, dtype, shape, nbytes in tensors:
        module, _, field = name.rpartition(".")
        if field == "weight":
            continue
        entry = listed.setdefault(
            module,
            {
                "stored_tensors": {},
                "quant_format": "exl3",
                "bits_per_weight": bits,
                "mcg_multiplier": MARKERS["mcg"],
            },
        )
        stored = entry["stored_tensors"]
        assert isinstance(stored, dict)
        kind = {"I32": "torch.int32", "F16": "torch.float16", "I16": "torch.int16"}[dtype]
        stored[name] = {"shape": list(shape), "n_bytes": nbytes, "dtype": kind}
    return dict(listed)


def _write_shard(path: Path, tensors: list[Entry], *, full: bool) -> int:
    header = render({"format": "pt"}, tensors)
    size = sum(nbytes for *_, nbytes in tensors)
    markers = b"".join(
        MARKERS["mcg"].to_bytes(4, "little") for _, dtype, *_ in tensors if dtype == "I32"
    )
    with path.open("wb") as stream:
        stream.write(header + markers)
        if not full:
            stream.truncate(len(header) + size)
            return size
        random.seed(path.name)
        noise = bytearray(random.randbytes(4 << 20))
        # Scales are float16: no exponent may have all its bits set.
        tame = bytes(byte & 0xBF for byte in range(256))
        left = size - len(markers)
        plain = sum(nbytes for _, dtype, _, nbytes in tensors if dtype in ("BF16", "F16"))
        while left:
            part = noise[: min(left, len(noise))]
            if plain > 0:
                part = part.translate(tame)
                plain -= len(part)
            stream.write(part)
            left -= len(part)
        stream.flush()
        os.fsync(stream.fileno())
    return size
