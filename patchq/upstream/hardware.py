"""Which files of a release fit the machines that the runner is for, and PEP 508's markers there."""

from __future__ import annotations

from collections.abc import Sequence

from patchq.upstream.components import Hardware
from patchq.upstream.pages import Dist

_FIRST_GLIBC = 5
_LEGACY = {(2, 17): "manylinux2014", (2, 12): "manylinux2010", (2, 5): "manylinux1"}
"""PEP 600: what the older names of manylinux stand for."""


def markers(hardware: Hardware) -> dict[str, str]:
    """Every marker of PEP 508, so that nothing of this machine is asked: CPython on Linux."""
    full = hardware.python if hardware.python.count(".") > 1 else f"{hardware.python}.0"
    return {
        "implementation_name": "cpython",
        "implementation_version": full,
        "os_name": "posix",
        "platform_machine": hardware.machine,
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": full,
        "python_version": ".".join(hardware.python.split(".")[:2]),
        "sys_platform": "linux",
    }


class Fit:
    """Picks files for `hardware`."""

    def __init__(self, hardware: Hardware) -> None:
        from packaging.tags import compatible_tags, cpython_tags

        self._hardware = hardware
        version = tuple(map(int, hardware.python.split(".")[:2]))
        platforms = _platforms(hardware)
        ordered = [
            *cpython_tags(version, platforms=platforms),
            *compatible_tags(version, f"cp{version[0]}{version[1]}", platforms),
        ]
        self._rank = {tag: place for place, tag in reversed(list(enumerate(ordered)))}

    def best(self, files: Sequence[Dist]) -> Dist | None:
        """The file that an installer would take: the wheel that fits best, else the source."""
        ranked = [
            (rank, each.filename, each)
            for each in files
            if each.wheel and (rank := self._of(each.filename)) is not None
        ]
        if ranked:
            return min(ranked, key=lambda each: each[:2])[2]
        return next((each for each in files if not each.wheel), None)

    def unfit(self, files: Sequence[Dist]) -> str:
        """Why none of the files fits; empty where one does."""
        if self.best(files) is not None:
            return ""
        there = ", ".join(sorted(each.filename for each in files)[:3]) or "none at all"
        return (
            f"none of its files fits {self._hardware.machine}, CPython {self._hardware.python},"
            f" glibc {self._hardware.glibc}; there is {there}"
        )

    def _of(self, filename: str) -> int | None:
        from packaging.utils import parse_wheel_filename

        ranks = [self._rank[tag] for tag in parse_wheel_filename(filename)[3] if tag in self._rank]
        return min(ranks, default=None)


def _platforms(hardware: Hardware) -> list[str]:
    """The newest first, as pip ranks them."""
    major, minor = map(int, [*hardware.glibc.split("."), "0"][:2])
    found: list[str] = []
    for each in range(minor, _FIRST_GLIBC - 1, -1):
        found.append(f"manylinux_{major}_{each}_{hardware.machine}")
        if (major, each) in _LEGACY:
            found.append(f"{_LEGACY[major, each]}_{hardware.machine}")
    return [*found, f"linux_{hardware.machine}"]
