"""Queues on real vLLM releases, for tests that have a network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.support.cli import program
from tests.support.history import git

ROOT = Path(__file__).parents[2]
FIRST = ROOT / "tests/scenarios/vllm-0.29.0"


class Repository:
    """A git repository with a queue, driven by `patchq` as a user drives it."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.root = folder
        self.cache = cache
        folder.mkdir()
        git(folder, "init", "-q", "-b", "main")

    def patchq(self, *args: str, codes: tuple[int, ...] = (0,)) -> str:
        done = subprocess.run(
            [program(), *args],
            cwd=self.root,
            env={**os.environ, "PATCHQ_CACHE": str(self.cache)},
            capture_output=True,
            text=True,
        )
        assert done.returncode in codes, done.stdout + done.stderr
        return done.stdout

    def sync(self, release: str) -> dict[str, Any]:
        report: dict[str, Any] = json.loads(self.patchq("sync", "--onto", release, "--json"))
        return report

    def commit(self) -> None:
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "-m", "queue")


def first_series(folder: Path, cache: Path) -> Repository:
    """A queue on 0.29.0 with the patches as they were written, their checks confirmed."""
    queue = Repository(folder, cache)
    queue.patchq("init", "vllm", "--index", "vllm", "--base", "0.29.0")
    queue.patchq("import", *sorted(str(path) for path in FIRST.glob("*.patch")))
    # import takes no checks from outside; whoever writes the files by hand brings them along.
    for path in FIRST.glob("*.patch"):
        shutil.copy(path, queue.root / "series" / path.name)
    queue.commit()
    return queue


def shipped(folder: Path, cache: Path) -> Repository:
    """The queue of this repository as it stands, committed in a repository of its own."""
    queue = Repository(folder, cache)
    for name in ("series", "upstream"):
        shutil.copytree(ROOT / name, queue.root / name)
    queue.commit()
    return queue
