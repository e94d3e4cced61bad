"""Whether the peers' own ways of applying would come to the same files as a three-way merge.

``git rebase`` merges, quilt calls patch(1) with fuzz, StGit tries ``git apply`` and then a merge
that aligns lines in another way. A fair race needs work that all of them can do.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Sides:
    """One file: before and after the patch on the old release, before and after on the new."""

    path: str
    base: bytes
    theirs: bytes
    ours: bytes
    merged: bytes


def agree(files: list[Sides], diff: bytes, env: Mapping[str, str]) -> bool:
    """Whether patch(1), ``git apply`` (where it applies) and ``git merge-file`` all agree."""
    with tempfile.TemporaryDirectory(prefix="patchq-bench-") as name:
        folder = Path(name)
        return (
            all(_merge(folder, each, env) for each in files)
            and _applied(folder, ["patch", "-p1", "-s", "-f", "-E"], files, diff, env) is not False
            and _applied(folder, ["git", "apply", "-p1"], files, diff, env, may_fail=True)
            is not False
        )


def _merge(folder: Path, sides: Sides, env: Mapping[str, str]) -> bool:
    names = []
    for name, data in (("ours", sides.ours), ("base", sides.base), ("theirs", sides.theirs)):
        (folder / name).write_bytes(data)
        names.append(name)
    done = subprocess.run(
        ["git", "merge-file", "-p", "-q", *names], cwd=folder, env=dict(env), capture_output=True
    )
    return done.returncode == 0 and done.stdout == sides.merged


def _applied(
    folder: Path,
    command: list[str],
    files: list[Sides],
    diff: bytes,
    env: Mapping[str, str],
    *,
    may_fail: bool = False,
) -> bool | None:
    """Whether `command` gives the merged files; None where it does not apply and need not."""
    if shutil.which(command[0]) is None:
        return None
    tree = folder / command[0]
    for each in files:
        file = tree / each.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(each.ours)
    # Not inside a repository, wherever the temporary folder lies.
    outside = {**env, "GIT_CEILING_DIRECTORIES": str(folder)}
    outside.pop("GIT_INDEX_FILE", None)
    done = subprocess.run(command, cwd=tree, env=outside, input=diff, capture_output=True)
    if done.returncode:
        return None if may_fail else False
    return all((tree / each.path).read_bytes() == each.merged for each in files)
