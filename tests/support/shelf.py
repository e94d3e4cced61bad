"""A folder of wheels, as `pip download` fills one: packed anew from what is installed here."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def fill(folder: Path, name: str) -> bytes:
    """What the package `name` needs, all of it, into `folder`; the lock of that, with hashes."""
    folder.mkdir(parents=True, exist_ok=True)
    wheels = {each.name: _pack(folder, each) for each in _needed(name)}
    return b"".join(
        line(name, distribution(name).version, wheel) for name, wheel in sorted(wheels.items())
    )


def line(name: str, version: str, wheel: Path) -> bytes:
    """A package in a lock."""
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return f"{canonicalize_name(name)}=={version} --hash=sha256:{digest}\n".encode()


def _needed(name: str) -> Iterator[Distribution]:
    """Without `name` itself."""
    seen: set[str] = {canonicalize_name(name)}
    open_ = [(name, frozenset[str]())]
    while open_:
        package, extras = open_.pop()
        for text in distribution(package).requires or ():
            need = Requirement(text)
            holds = any(
                need.marker is None or need.marker.evaluate({"extra": extra})
                for extra in (*extras, "")
            )
            if holds and canonicalize_name(need.name) not in seen:
                seen.add(canonicalize_name(need.name))
                yield distribution(need.name)
                open_.append((need.name, frozenset(need.extras)))


def _pack(folder: Path, found: Distribution) -> Path:
    info = next(file for file in found.files or () if file.name == "WHEEL")
    tags = [
        line[5:].split("-") for line in info.read_text().splitlines() if line.startswith("Tag: ")
    ]
    tag = "-".join(".".join(dict.fromkeys(each)) for each in zip(*tags, strict=True))
    stem = str(info.parent).removesuffix(".dist-info")
    path = folder / f"{stem}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for file in found.files or ():
            place = Path(str(file.locate()))
            inside = not str(file).startswith("..") and "__pycache__" not in file.parts
            if inside and place.is_file() and file.name not in ("INSTALLER", "REQUESTED"):
                wheel.write(place, str(file))
    return path
