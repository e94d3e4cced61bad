"""Which effects of a run are worth a kill: those before which another state stands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.support import crash


def telling(run: crash.Run, root: Path, before: Path) -> list[int]:
    """The steps of `run` below `root` (`before` is a copy of it as it was), in order.

    Left out is what leaves everything as it is, and so the same for the step after it: a folder
    made that is there already. Times and modes of a copy that gets its name later tell as little.
    """
    made: set[str] = set()
    found = []
    for step, effect in enumerate(run.effects, 1):
        name, _, paths = effect.partition(" ")
        if str(root) not in paths:
            continue
        if name == "os.mkdir":
            if paths in made or (before / Path(paths).relative_to(root)).is_dir():
                continue
            made.add(paths)
        elif name in ("os.utime", "os.chmod") and _is_renamed(paths, run.effects[step:]):
            continue
        found.append(step)
    return found


def _is_renamed(path: str, later: Sequence[str]) -> bool:
    return any(effect.startswith(f"os.rename {path} ") for effect in later)
