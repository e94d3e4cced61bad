"""A folder with a checkpoint: its shards, its index, its JSON files, all checked, no data read.

Plain folders, single files (no index) and Hugging Face cache snapshots (symlinks to blobs) are
alike; a symlink is followed, a name that leaves the folder is not.
"""

from __future__ import annotations

import json
import os
import stat
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from patchq.errors import PatchqError
from patchq.exl3.collector import aside
from patchq.exl3.headers import AGAIN, BadFile, read_shard
from patchq.exl3.model import TILE, Checkpoint, Shard, Tensor
from patchq.progress import SILENT, Progress

INDEX = "model.safetensors.index.json"
CONFIG = "config.json"
QUANTIZATION = "quantization_config.json"
WRITTEN = frozenset({INDEX, CONFIG, QUANTIZATION})
SUFFIX = ".safetensors"
MAX_JSON = 500_000_000
_STORAGE = b'\n    "tensor_storage": {'


@aside()
def read(root: Path, progress: Progress = SILENT) -> Checkpoint:
    """The checkpoint in `root`, which may be the path of a single .safetensors file.

    Raises BadFile where a header, the index or a JSON file is damaged, or where they disagree.
    """
    only = None
    if root.is_file() and root.name.endswith(SUFFIX):
        root, only = root.parent, root.name
    if not root.is_dir():
        raise PatchqError(f"{root} is no folder", "name the folder that holds config.json")
    names = sorted(entry.name for entry in os.scandir(root))
    weights = None if only or INDEX not in names else _weight_map(root)
    files = [only] if only else _shard_files(root, names, weights)
    shards = _read_all(root, files, progress)
    tensors = _merge(shards)
    if weights is not None:
        _check_index(weights, tensors)
    config = read_json(root / CONFIG) if CONFIG in names else {}
    quantization = _quantization(root, names, config, tensors)
    return Checkpoint(
        root, shards, tensors, config, quantization, weights is not None, _others(root, files)
    )


def _weight_map(root: Path) -> dict[str, str]:
    weights = read_json(root / INDEX).get("weight_map")
    if not isinstance(weights, dict) or not weights:
        raise BadFile(f"{INDEX} has no weight_map", AGAIN)
    try:
        files = set(weights.values())
    except TypeError:
        files = set(map(repr, weights.values()))
    for file in files:
        if not isinstance(file, str) or not is_plain(file) or not file.endswith(SUFFIX):
            raise BadFile(
                f"{INDEX} places a tensor in {str(file)[:80]!r}, which is no shard in this folder",
                "a shard's name has no slash, no `..`, and ends in .safetensors",
            )
    return weights


def is_plain(file: str) -> bool:
    """Whether `file` names something in its folder, on any system, and nothing hidden."""
    return (
        bool(file)
        and not file.startswith(".")
        and not any(char in "/\\\0" or ord(char) < 32 for char in file)
        and len(file.encode("utf-8", "surrogatepass")) <= 255
    )


def _shard_files(root: Path, names: list[str], weights: dict[str, str] | None) -> list[str]:
    found = [name for name in names if name.endswith(SUFFIX) and not name.startswith(".")]
    if weights is None:
        if not found:
            raise PatchqError(
                f"{root} holds no .safetensors file", "name the folder that holds config.json"
            )
        if len(found) > 1 and "model.safetensors" not in found:
            raise BadFile(
                f"{len(found)} .safetensors files but no {INDEX} that says what is in them", AGAIN
            )
        return ["model.safetensors"] if "model.safetensors" in found else found
    wanted = sorted(set(weights.values()))
    missing = sorted(set(wanted) - set(names))
    if missing:
        raise BadFile(
            f"{len(missing)} of {len(wanted)} shards are not there: {', '.join(missing[:3])}"
            + (", ..." if len(missing) > 3 else ""),
            "finish the download",
        )
    return wanted


def _read_all(root: Path, files: list[str], progress: Progress) -> tuple[Shard, ...]:
    shards = []
    for done, file in enumerate(files):
        progress.step("reading headers", done, len(files), "shards")
        shards.append(read_shard(root, file))
    return tuple(shards)


def _merge(shards: Iterable[Shard]) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    count = 0
    for shard in shards:
        tensors.update((tensor.name, tensor) for tensor in shard.tensors)
        count += len(shard.tensors)
        if len(tensors) != count:
            names = {tensor.name for each in shards if each is not shard for tensor in each.tensors}
            twice = next(tensor for tensor in shard.tensors if tensor.name in names)
            raise BadFile(f"{twice.name} stands in {shard.file} and in another shard", AGAIN)
    _check_names(tensors)
    return tensors


def _check_names(tensors: dict[str, Tensor]) -> None:
    """Asked of all names at once: of each alone only if the answer is bad."""
    if "" not in tensors and _is_sound(" ".join(tensors)):
        return
    for name, tensor in tensors.items():
        if not name or not _is_sound(name):
            raise BadFile(
                f"{tensor.file}: a tensor is named {name[:120]!r}",
                "a tensor's name has no slash, no `..` and no control character",
            )


def _is_sound(name: str) -> bool:
    return not ("/" in name or "\\" in name or ".." in name) and name.isprintable()


def _check_index(weights: dict[str, str], tensors: dict[str, Tensor]) -> None:
    stored = {name: tensor.file for name, tensor in tensors.items()}
    if stored == weights:
        return
    for name, file in weights.items():
        if name not in stored:
            raise BadFile(f"{INDEX} places {name} in {file}, which does not hold it", AGAIN)
        if stored[name] != file:
            raise BadFile(f"{INDEX} places {name} in {file}, but it is in {stored[name]}", AGAIN)
    name = next(name for name in stored if name not in weights)
    raise BadFile(f"{stored[name]} holds {name}, which {INDEX} does not know", AGAIN)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object. Raises BadFile."""
    return _object(json_bytes(path), path.name)


def json_bytes(path: Path) -> bytes:
    """What stands in a JSON file of a checkpoint. Raises BadFile."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise BadFile(f"{path.name} is no file", AGAIN)
        if found.st_size > MAX_JSON:
            raise BadFile(f"{path.name} has {found.st_size} bytes", AGAIN)
        return path.read_bytes()
    except OSError as problem:
        raise BadFile(f"{path.name}: {problem.strerror}", AGAIN) from None


def _object(raw: bytes, name: str) -> dict[str, Any]:
    try:
        value = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as problem:
        raise BadFile(f"{name} is no JSON ({str(problem)[:100]})", AGAIN) from None
    if not isinstance(value, dict):
        raise BadFile(f"{name} is no JSON object", AGAIN)
    return value


def _quantization(
    root: Path, names: list[str], config: dict[str, Any], tensors: dict[str, Tensor]
) -> dict[str, Any]:
    """quantization_config.json, or that part of config.json.

    Its `tensor_storage` lists every tensor once more: 48 MB for a large checkpoint. As exllamav3
    writes it (indented by four, the last key), it is left out where its layers' bits, counted, are
    those of the headers; else it stays, for the plan to say what differs.
    """
    if QUANTIZATION not in names:
        inside = config.get("quantization_config", {})
        return inside if isinstance(inside, dict) else {}
    raw = json_bytes(root / QUANTIZATION)
    place = raw.find(_STORAGE)
    if place < 0 or raw.find(b'\n    "', place + 1) >= 0 or raw.rstrip()[-9:] != b"}\n    }\n}":
        return _object(raw, QUANTIZATION)
    stored = Counter(
        tensor.shape[-1] // TILE
        for name, tensor in tensors.items()
        if name.endswith(".trellis") and tensor.shape
    )
    agrees = all(
        raw.count(b'"bits_per_weight": %d' % bits, place) == count for bits, count in stored.items()
    )
    if not agrees or raw.count(b'"quant_format": "exl3"', place) != stored.total():
        return _object(raw, QUANTIZATION)
    return _object(raw[:place].rstrip(b", \n") + b"}", QUANTIZATION)


def _others(root: Path, shards: Iterable[str]) -> tuple[str, ...]:
    """What is neither a shard nor written anew: tokenizer, template, code, licence.

    Folders are walked, symlinks to files followed, symlinks to folders and hidden names left.
    """
    known = WRITTEN | set(shards)
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and not os.path.islink(os.path.join(folder, name))
        )
        for name in sorted(files):
            relative = os.path.relpath(os.path.join(folder, name), root)
            if not name.startswith(".") and not name.endswith(SUFFIX) and relative not in known:
                found.append(relative)
    return tuple(found)
