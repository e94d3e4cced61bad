"""Assets above what one file of a release may hold: cut into parts, and put together again."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from patchq.errors import PatchqError
from patchq.release.manifest import Asset, Part

SIZE = 1_900_000_000
"""Bytes of a part. GitHub takes files below 2 GiB."""
_CHUNK = 1 << 20


def put(source: Path, folder: Path, name: str, size: int = SIZE) -> Asset:
    """Copy `source` into `folder` as the asset `name`, in parts where it is larger than `size`."""
    total = source.stat().st_size
    count = max(1, -(-total // size))
    if count > 99:
        raise PatchqError(f"{name} is too large for a release", "a release takes 99 parts of it")
    total_sum = hashlib.sha256()
    parts: list[Part] = []
    with source.open("rb") as file:
        for number in range(1, count + 1):
            part = f"{name}.part-{number:02}" if count > 1 else name
            own, left = hashlib.sha256(), size
            with (folder / part).open("xb") as out:
                while left and (chunk := file.read(min(_CHUNK, left))):
                    for each in (total_sum, own):
                        each.update(chunk)
                    out.write(chunk)
                    left -= len(chunk)
            parts.append(Part(part, size - left, own.hexdigest()))
    made = sum(part.size for part in parts)
    if made != total:
        raise PatchqError(f"{source} changed while it was copied", "run it again")
    return Asset(name, total, total_sum.hexdigest(), tuple(parts) if count > 1 else ())


def chunks(folder: Path, asset: Asset) -> Iterator[bytes]:
    """The asset's content, whatever it comes in. Raises OSError where a file is missing."""
    for name in tuple(part.name for part in asset.parts) or (asset.name,):
        with (folder / name).open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk


@contextmanager
def whole(folder: Path, asset: Asset | None) -> Iterator[Path]:
    """The asset as one file, for as long as this lasts. Raises ValueError where there is none."""
    if asset is None:
        raise ValueError("the release has no such file")
    with tempfile.TemporaryDirectory(prefix="patchq-") as place:
        yield join(folder, asset, Path(place) / asset.name)


def join(folder: Path, asset: Asset, target: Path) -> Path:
    """The asset as one file: where it lies already, or put together as `target`.

    Raises PatchqError where it is not what the manifest says.
    """
    if not asset.parts:
        return folder / asset.name
    beside = target.with_name(f".{target.name}.part")
    total_sum = hashlib.sha256()
    try:
        with beside.open("wb") as out:
            for chunk in chunks(folder, asset):
                total_sum.update(chunk)
                out.write(chunk)
        if total_sum.hexdigest() != asset.sha256:
            raise PatchqError(
                f"the parts of {asset.name} do not make up what the release says",
                "get them afresh",
            )
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
    return target
