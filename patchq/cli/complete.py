"""What the shell offers: names of queues and patches. Errors offer nothing."""

from __future__ import annotations

from pathlib import Path

from patchq.errors import PatchqError


def queue_names(incomplete: str) -> list[str]:
    from patchq import config

    try:
        names = config.queue_names(config.find_project(Path.cwd()))
    except (PatchqError, OSError):
        return []
    return [name for name in names if name.startswith(incomplete)]


def patch_names(incomplete: str) -> list[str]:
    from patchq import config
    from patchq.queue import series

    try:
        project = config.find_project(Path.cwd())
        folder = project.root / config.load_queue(project).series
        names = [patch.name for patch in series.read(folder).all]
    except (PatchqError, OSError):
        return []
    return [name for name in names if name.startswith(incomplete)]
