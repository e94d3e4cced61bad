"""What the gate needs to know of a release: which runner it is (`releases/N.toml`)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchq.build import lock as locks
from patchq.build.lock import RunnerLock
from patchq.errors import PatchqError
from patchq.smoke import gate_forms
from patchq.smoke.gate_forms import Figures

FOLDER = "releases"
_SAID = ("number", "lock", "tree")
_NUMBER = re.compile(r"[1-9][0-9]{0,5}")


@dataclass(frozen=True)
class Released:
    """`wheels`: by target, the name and sha256 of each, sorted; `figures`: what it reached."""

    number: int
    lock: RunnerLock
    tree: str
    wheels: Mapping[str, tuple[tuple[str, str], ...]]
    figures: Figures


def numbers(root: Path) -> list[int]:
    """The releases of the project at `root`, the oldest first."""
    found = (root / FOLDER).glob("*.toml")
    return sorted(int(path.stem) for path in found if _NUMBER.fullmatch(path.stem))


def named(root: Path, runner: str | None) -> int | None:
    """The number, where `runner` is that of a release; None where it may start a digest.

    Raises PatchqError for a number of no release that is too short for a digest.
    """
    if runner is None or not _NUMBER.fullmatch(runner):
        return None
    there = numbers(root)
    if int(runner) in there:
        return int(runner)
    if len(runner) >= locks.SHORTEST:
        return None
    raise PatchqError(
        f"there is no release {runner}",
        f"in {FOLDER}/ there is: {', '.join(map(str, there)) or 'none'}",
    )


def read(root: Path, number: int) -> Released:
    """Release `number` of the project at `root`. Raises PatchqError where its file is damaged."""
    where = f"{FOLDER}/{number}.toml"
    try:
        return _released(tomllib.loads((root / where).read_text(encoding="utf-8")), number)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise PatchqError(
            f"{where} is no release that this patchq can read",
            f"see `patchq release show {number}`; git knows the last good one",
        ) from error


def withdrawn(root: Path) -> frozenset[int]:
    """The releases that are marked so. Raises PatchqError where the marks are damaged."""
    where = f"{FOLDER}/withdrawn.toml"
    try:
        table = tomllib.loads((root / where).read_text(encoding="utf-8"))
        marks = [tomllib.loads(each["marker"]) for each in table.get("withdrawn", [])]
        return frozenset(int(mark["release"]) for mark in marks)
    except FileNotFoundError:
        return frozenset()
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise PatchqError(
            f"{where} is damaged: {error}", "git knows the last good one; get it back from there"
        ) from error


def _released(table: Mapping[str, Any], number: int) -> Released:
    lock = locks.make(table["facts"])
    tree = lock.get("tree")
    if tree is None or (number, lock.digest, tree) != tuple(map(table.get, _SAID)):
        raise ValueError("it says two things of one")
    digests = {str(each["name"]): str(each["sha256"]) for each in table["assets"]}
    wheels = {
        str(target["name"]): tuple(sorted((name, digests[name]) for name in target["wheels"]))
        for target in table["targets"]
    }
    return Released(number, lock, tree, wheels, gate_forms.released(table.get("bench", [])))
