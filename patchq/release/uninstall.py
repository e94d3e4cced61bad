"""Remove all that was installed, on all nodes; what is not ours is left, and named."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from patchq.cluster import config, errand, lock
from patchq.cluster.config import Cluster, Node
from patchq.cluster.nodes import Reach
from patchq.cluster.ranks import PATIENCE, Stopped, stop_ranks
from patchq.cluster.shell import Shell
from patchq.errors import PatchqError
from patchq.progress import SILENT, Progress
from patchq.release import installed, tools, units


@dataclass(frozen=True)
class Removed:
    """A node: patchq's folder there (None: there is none), its bytes with the models that patchq
    fetched, those models, and what stays in the folder because it is not patchq's."""

    node: str
    folder: str | None
    size: int
    models: tuple[str, ...]
    other: tuple[str, ...]


@dataclass(frozen=True)
class UninstallReport:
    """`nodes` by cluster; a PatchqError stands for a node that was not reached: what is there is
    there still, and the cluster is kept for the next time."""

    home: Path
    nodes: tuple[tuple[str, Removed | PatchqError], ...]
    unit: Path | None
    kept_models: bool
    dry_run: bool

    @property
    def exit_code(self) -> int:
        return max((e.exit_code for _, e in self.nodes if isinstance(e, PatchqError)), default=0)


def uninstall(
    *, keep_models: bool = False, dry_run: bool = False, progress: Progress = SILENT
) -> UninstallReport:
    """Stop what runs, and remove it; `dry_run`: say what would go.

    Models that were there before are never removed. Raises PatchqError where nothing is installed,
    or somebody else is at work. `last` comes after it.
    """
    home = installed.home()
    if not home.is_dir():
        raise PatchqError("nothing is installed here", "`patchq install N` installs a release")
    with installed.alone():
        clusters = [config.load(home, name) for name in config.names(home)]
        unit = units.folder() / units.NAME
        there = unit if unit.is_file() else None
        if not dry_run:
            units.remove()
        nodes: list[tuple[str, Removed | PatchqError]] = []
        for cluster in clusters:
            found = _cluster(cluster, keep_models, dry_run, progress)
            nodes += [(cluster.name, each) for each in found]
            if not dry_run and not any(isinstance(each, PatchqError) for each in found):
                (home / installed.CLUSTERS / f"{cluster.name}.toml").unlink()
        report = UninstallReport(home, tuple(nodes), there, keep_models, dry_run)
        if not dry_run and not report.exit_code:
            tools.remove()
    return report


def last(report: UninstallReport) -> None:
    """Remove the folder that this very patchq may run from: after the report was shown."""
    if not report.dry_run and not report.exit_code:
        shutil.rmtree(report.home)


def _cluster(
    cluster: Cluster, keep_models: bool, dry_run: bool, progress: Progress
) -> Sequence[Removed | PatchqError]:
    with (
        Reach(cluster) as reach,
        lock.held(reach, f"uninstall {cluster.name}", partly=True) as missed,
    ):
        reached = [node for node in cluster.nodes if node.name not in missed]
        if not dry_run:
            stopped = stop_ranks(reach, reached, PATIENCE, progress)
            if left := [each for each in stopped if isinstance(each, Stopped) and each.left]:
                raise PatchqError(
                    f"rank {left[0].node.rank} on {left[0].node.name} does not end",
                    "see what holds it there; nothing was removed",
                )
        progress.step(f"removing what is on the nodes of {cluster.name}")

        def one(node: Node, there: Shell) -> Removed:
            asked = {"models": node.models, "keep_models": keep_models}
            said = errand.run(there, node, "removal.look", asked)
            if not dry_run:
                errand.run(there, node, "removal.remove", asked, errand.LIMIT * 10)
            models, other = tuple(map(str, said["models"])), tuple(map(str, said["other"]))
            return Removed(node.name, said["folder"], int(said["size"]), models, other)

        found = dict(zip(reached, reach.each(one, reached), strict=True))
        return [found[node] if node in found else missed[node.name] for node in cluster.nodes]
