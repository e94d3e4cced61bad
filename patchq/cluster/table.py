"""Tables of the files that people write in ci/: what is in them, and how their faults are told."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from patchq.errors import PatchqError

NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,62}")
FOUND = frozenset(
    {
        "GLOO_SOCKET_IFNAME",
        "NCCL_IB_GID_INDEX",
        "NCCL_IB_HCA",
        "NCCL_SOCKET_IFNAME",
        "VLLM_HOST_IP",
    }
)
"""Variables that differ from node to node: patchq sets them from `address` and `device`."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def names(root: Path, kind: str) -> list[str]:
    """The files ci/KINDs/*.toml of the project in the folder `root`, by name, sorted."""
    found = (root / "ci" / f"{kind}s").glob("*.toml")
    return sorted(path.stem for path in found if NAME.fullmatch(path.stem))


def read(root: Path, kind: str, name: str) -> tuple[dict[str, Any], str]:
    """What such a file holds, and its path below `root`. Raises PatchqError."""
    where = f"ci/{kind}s/{name}.toml"
    if name not in names(root, kind):
        there = ", ".join(names(root, kind)) or "none"
        raise PatchqError(f"there is no {kind} {name!r}", f"in ci/{kind}s there is: {there}")
    try:
        return tomllib.loads((root / where).read_text(encoding="utf-8")), where
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PatchqError(f"{where} is not valid TOML: {error}", "correct the file") from error


class Table:
    """A table of the file, and how its faults are told. `keys`: all that it may have."""

    def __init__(self, data: Any, where: str, keys: tuple[str, ...] | None) -> None:
        self.where = where
        if not isinstance(data, Mapping):
            raise self.wrong("it is no table", "correct the file")
        self.data = data
        if keys is not None and (unknown := sorted(set(data) - set(keys))):
            raise self.wrong(f"unknown keys: {', '.join(unknown)}", f"known are {', '.join(keys)}")

    def wrong(self, what: str, hint: str) -> PatchqError:
        return PatchqError(f"{self.where}: {what}", hint)

    def text(self, key: str, default: str | None = None) -> str:
        value = self.data.get(key, default)
        if not isinstance(value, str) or (default is None and not value):
            raise self.wrong(f"{key} is missing or no text", f'write {key} = "..."')
        return value

    def whole(self, key: str, least: int, most: int) -> int:
        value = self.data.get(key)
        if type(value) is not int or not least <= value <= most:
            raise self.wrong(
                f"{key} is missing or no number from {least} to {most}", f"write {key} = {least}"
            )
        return value


def environment(entry: Any, where: str) -> dict[str, str]:
    """Variables, sorted, none of FOUND. Raises PatchqError."""
    table = Table(entry, f"{where}, environment", None)
    for key, value in table.data.items():
        if not _VARIABLE.fullmatch(key) or not isinstance(value, str) or "\0" in value:
            raise table.wrong(f"{key} is no variable with a text", 'write NAME = "value"')
        if key in FOUND:
            raise table.wrong(
                f"{key} differs from node to node",
                "leave it out: it is found from the node's address and device",
            )
    return dict(sorted(table.data.items()))
