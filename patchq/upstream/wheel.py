"""The Python of a wheel, read without trusting it: nothing is written to the disk.

For packages that publish no source archive (PEP 427 says what a wheel is).
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from patchq.errors import PatchqError
from patchq.paths import is_inside, show
from patchq.upstream.archive import MIB, Limits, Member

_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    # What odd offsets, methods and flags bring `zipfile` to.
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
)
LIMITS = Limits(file=16 * MIB, total=512 * MIB)


def python_files(path: Path, *, limits: Limits = LIMITS) -> Iterator[Member]:
    """The `.py` files of the wheel at `path`, in its order.

    Raises PatchqError for what is no wheel, is damaged, or has a member that leaves its folder,
    stands there twice or is too large.
    """
    seen: set[str] = set()
    total = 0
    try:
        with zipfile.ZipFile(path) as wheel:
            for info in wheel.infolist():
                name = info.filename
                if info.is_dir() or not name.endswith(".py"):
                    continue
                raw = name.encode("utf-8", "surrogateescape")
                total += info.file_size
                if not is_inside(raw) or name in seen or len(raw) > limits.path:
                    raise _refused(path, name, "has a name that leaves its folder or stands twice")
                if info.file_size > limits.file or total > limits.total:
                    raise _refused(path, name, "is too large for a Python file")
                seen.add(name)
                # zipfile checks the size and the checksum that the directory states.
                yield Member(raw, False, wheel.read(info))
    except _DAMAGE as error:
        raise PatchqError(
            f"{path.name} is not a whole wheel: {error}",
            "delete it and run again, so that it is downloaded afresh",
        ) from error


def _refused(path: Path, name: str, what: str) -> PatchqError:
    return PatchqError(
        f"{path.name}: the member '{show(name):.200}' {what}",
        "nothing was taken from the wheel; tell those who publish it",
    )
