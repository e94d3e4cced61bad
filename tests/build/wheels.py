"""Small wheels in the form of upstream's."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

from patchq.build.wheelfile import digest

INFO = "vllm-1.0.dist-info"
NAME = "vllm-1.0-cp38-abi3-manylinux_2_28_aarch64.whl"
METADATA = b"Metadata-Version: 2.4\nName: vllm\nVersion: 1.0\nRequires-Dist: torch==2.13.0\n"
WHEEL = b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp38-abi3-linux_aarch64\n"


def make(
    path: Path,
    files: Mapping[str, bytes],
    *,
    runs: str = "",
    record: bool = True,
    info: str = INFO,
    metadata: bytes = METADATA,
) -> Path:
    """A wheel with `files` of the package; the member `runs` is executable."""
    members = {**files, f"{info}/METADATA": metadata, f"{info}/WHEEL": WHEEL}
    rows = "".join(f"{name},{digest(data)},{len(data)}\n" for name, data in members.items())
    if record:
        members[f"{info}/RECORD"] = (rows + f"{info}/RECORD,,\n").encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, (2026, 9, 9, 12, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (0o100755 if name == runs else 0o100644) << 16
            wheel.writestr(info, data)
    return path


def plain(
    folder: Path,
    name: str,
    version: str,
    files: Mapping[str, bytes],
    *requires: str,
    licence: str = "",
) -> Path:
    """A wheel for any machine of the package `name`, with its requirements."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{name.replace('-', '_')}-{version}"
    needs = "".join(f"Requires-Dist: {each}\n" for each in requires)
    needs += f"License-Expression: {licence}\n" if licence else ""
    head = f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n{needs}\n"
    path = folder / f"{stem}-py3-none-any.whl"
    return make(path, files, info=f"{stem}.dist-info", metadata=head.encode())


def contents(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as wheel:
        assert wheel.testzip() is None
        return {name: wheel.read(name) for name in wheel.namelist()}


def recorded(path: Path) -> dict[str, tuple[str, str]]:
    """RECORD's lines by name."""
    (text,) = [data for name, data in contents(path).items() if name.endswith("/RECORD")]
    rows = [line.rsplit(",", 2) for line in text.decode().splitlines()]
    return {name: (found, size) for name, found, size in rows}
