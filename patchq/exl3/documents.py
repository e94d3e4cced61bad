"""Writes what stands beside the shards: the JSON files of the result, and copies of the others."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from patchq.exl3 import checkpoint as checkpoints
from patchq.exl3 import manifest
from patchq.exl3.layout import Layout, Output
from patchq.exl3.model import Plan
from patchq.exl3.summary import Summary


def copy_others(root: Path, others: Iterable[str], into: Path) -> None:
    for name in others:
        path = into / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with (root / name).open("rb") as source, path.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
            target.flush()
            os.fsync(target.fileno())


def write_documents(
    into: Path,
    plan: Plan,
    summary: Summary,
    layout: Layout,
    files: Iterable[manifest.FileEntry],
    outputs: Mapping[str, tuple[Output, ...]],
) -> None:
    for name, document in manifest.small_files(plan, summary, layout, files).items():
        _write(into / name, iter([manifest.dump(document)]))
    everything = [output for each in outputs.values() for output in each]
    _write(into / checkpoints.INDEX, _index(everything, summary.bytes_result))


def _index(outputs: Iterable[Output], size: int) -> Iterator[bytes]:
    """model.safetensors.index.json, written by and by: it may be long."""
    yield f'{{\n  "metadata": {{"total_size": {size}}},\n  "weight_map": {{'.encode()
    comma = "\n"
    for output in outputs:
        file = json.dumps(output.file)
        lines = (f"    {json.dumps(name)}: {file}" for name in output.tensors)
        if output.tensors:
            yield (comma + ",\n".join(lines)).encode()
            comma = ",\n"
    yield b"\n  }\n}\n"


def _write(path: Path, chunks: Iterator[bytes]) -> None:
    with path.open("wb") as stream:
        for chunk in chunks:
            stream.write(chunk)
        stream.flush()
        os.fsync(stream.fileno())
