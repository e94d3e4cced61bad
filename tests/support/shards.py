"""Safetensors files written and read without patchq: what its reader is tested with."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

BFLOAT16 = np.dtype([("BF16", "<u2")])
"""numpy has no bfloat16: its bits, under a name."""
DTYPES = {
    "F16": np.dtype("<f2"),
    "BF16": BFLOAT16,
    "F32": np.dtype("<f4"),
    "I16": np.dtype("<i2"),
    "I32": np.dtype("<i4"),
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
TORCH = {
    DTYPES["F16"]: "torch.float16",
    DTYPES["BF16"]: "torch.bfloat16",
    DTYPES["F32"]: "torch.float32",
    DTYPES["I16"]: "torch.int16",
    DTYPES["I32"]: "torch.int32",
}


def write_safetensors(path: Path, tensors: Mapping[str, Array], metadata: bool = True) -> None:
    """One shard, its tensors in the given order, end to end, the header padded to 8 bytes."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}} if metadata else {}
    at = 0
    for name, array in tensors.items():
        header[name] = {
            "dtype": NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            file.write(array.tobytes())


def read_safetensors(path: Path) -> dict[str, Array]:
    """All tensors of a shard, read without patchq's reader."""
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    found = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        part = data[8 + length + first : 8 + length + last]
        found[name] = np.frombuffer(part, DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return found


def read_folder(folder: Path) -> dict[str, Array]:
    """All tensors of all shards of a folder."""
    found: dict[str, Array] = {}
    for path in sorted(folder.rglob("*.safetensors")):
        found.update(read_safetensors(path))
    return found
