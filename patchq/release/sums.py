"""`SHA256SUMS`: a line for each file of a bundle, as `sha256sum -c` reads it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from patchq.release.tables import FILE, SHA256


def write(digests: Mapping[str, str]) -> bytes:
    """`digests`: sha256 by file name."""
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items())).encode()


def read(data: bytes) -> dict[str, str]:
    """What `write` made.

    Raises ValueError for anything else: another order, a folder, a name that stands twice.
    """
    found: dict[str, str] = {}
    for line in data.decode("ascii").removesuffix("\n").split("\n"):
        digest, _, name = line.partition("  ")
        if not SHA256.fullmatch(digest) or not FILE.fullmatch(name):
            raise ValueError(f"{line!r:.80} is no line of sums")
        found[name] = digest
    if write(found) != data:
        raise ValueError("its lines are not sorted, or one stands twice")
    return found


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
