"""Write to a cache: at once or not at all, and never in anybody's way."""

from __future__ import annotations

import os
from pathlib import Path


def keep(file: Path, data: bytes) -> None:
    """Put `data` into `file`, whose folder is made; where it cannot be written, nothing happens."""
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(data)
        beside.replace(file)
    except OSError:
        try:
            beside.unlink(missing_ok=True)
        except OSError:
            return
