"""Measures the runner that serves on a cluster, and starts it once for each value of a setting.

The nodes are held while they are measured. Where ranks ended meanwhile, or are others than at the
beginning, the figures are not whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from patchq.cluster.config import Cluster
from patchq.config import Project
from patchq.errors import PatchqError
from patchq.progress import SILENT, Progress
from patchq.smoke import sides
from patchq.smoke.bench import Bench
from patchq.smoke.identity import Identity
from patchq.smoke.nodes import Nodes, at_work, changed
from patchq.smoke.sides import Asked


def bench(
    project: Project,
    cluster: Cluster,
    profile: str | None,
    asked: Asked,
    identified: Callable[[Project, Nodes], Identity | None],
    *,
    cache: Path,
    progress: Progress = SILENT,
) -> Bench:
    """Measures what runs; `profile`: its name, None for the one that does.

    `identified` says what the figures are bound to. Raises as `at_work` and `measure` do.
    """
    with at_work(project.root, cluster, profile, f"bench {cluster.name}") as nodes:
        runner = identified(project, nodes)
        made = sides.bench(
            [nodes.url], [cluster.name], asked, nodes.profile, cache=cache, progress=progress
        )
        made = replace(made, runner=runner)
        if made.stopped is None and (why := lost(nodes)):
            made = replace(made, stopped=why)
        return made


def lost(nodes: Nodes) -> str | None:
    """Why the ranks are not those that were there at the beginning; None where they are."""
    for before, now in zip(nodes.started, nodes.states(), strict=True):
        if isinstance(now, PatchqError):
            return now.message
        if why := changed(before, now):
            return why
    return None
