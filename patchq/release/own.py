"""patchq itself as a wheel, of what runs here: the same patchq gives the same bytes.

(Wheels: PEP 427; members stored and dated as the build's own are, patchq/build/wheelfile.py.)
"""

from __future__ import annotations

import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import patchq
from patchq.build.wheelfile import DATE, digest
from patchq.errors import PatchqError

_LEFT_OUT = ("__pycache__",)
_WHEEL = b"Wheel-Version: 1.0\nGenerator: patchq\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def name() -> str:
    return f"patchq-{patchq.__version__}-py3-none-any.whl"


def write(path: Path) -> None:
    """Write the wheel. Raises PatchqError where patchq runs without being installed."""
    top = Path(patchq.__file__).parent
    files = {
        f"patchq/{each.relative_to(top).as_posix()}": each.read_bytes()
        for each in top.rglob("*")
        if each.is_file() and not set(_LEFT_OUT) & set(each.parts) and each.suffix != ".pyc"
    }
    info = f"patchq-{patchq.__version__}.dist-info"
    files |= {f"{info}/{key}": data for key, data in _metadata().items()}
    rows = [f"{key},{digest(files[key])},{len(files[key])}\n" for key in sorted(files)]
    record = "".join([*rows, f"{info}/RECORD,,\n"]).encode()
    with zipfile.ZipFile(path, "x") as out:
        for member, data in [*sorted(files.items()), (f"{info}/RECORD", record)]:
            entry = zipfile.ZipInfo(member, DATE)
            entry.create_system = 3
            entry.external_attr = 0o100644 << 16
            out.writestr(entry, data)


def _metadata() -> dict[str, bytes]:
    try:
        here = distribution("patchq")
    except PackageNotFoundError:
        here = None
    found = {key: here and here.read_text(key) for key in ("METADATA", "entry_points.txt")}
    missing = sorted(key for key, text in found.items() if not text)
    if missing:
        raise PatchqError(
            f"patchq is not installed here as a package: it has no {missing[0]}",
            "install it (`pip install patchq`), then cut the release",
        )
    assert here is not None
    licences = [f"licenses/{each}" for each in here.metadata.get_all("License-File") or ()]
    found |= {each: text for each in licences if (text := here.read_text(each))}
    return {"WHEEL": _WHEEL, **{key: str(text).encode() for key, text in found.items()}}
