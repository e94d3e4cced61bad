"""Whether the machines can run a release, asked before anything is downloaded."""

from __future__ import annotations

import shutil

from patchq.build.target import Target
from patchq.cluster import ranks
from patchq.cluster.config import Cluster
from patchq.doctor import nodes
from patchq.doctor.machine import GRAPHICS
from patchq.doctor.model import Check
from patchq.errors import Incomplete, PatchqError, ProofFailed
from patchq.progress import SILENT, Progress
from patchq.release import installed
from patchq.release.fetch import ORIGIN, Offer
from patchq.release.manifest import Manifest

BUSY = ("memory", "port", "swap")
"""What a runner that serves has taken, and gives back when it stops."""


def check(cluster: Cluster, offer: Offer, progress: Progress = SILENT) -> tuple[Check, ...]:
    """What the doctor says of each machine, and whether the release fits on the disk here.

    Raises ProofFailed where a machine cannot run it, Incomplete where one is not reached. Where a
    runner serves already, what it has taken does not count.
    """
    serves = [
        each
        for each in ranks.status(cluster, progress=progress).nodes
        if isinstance(each, ranks.Status) and each.alive
    ]
    found = nodes.check(cluster, progress=progress)
    if serves:
        found = tuple(each for each in found if not _of(each, BUSY))
    for each in found:
        if each.state == "fatal":
            raise ProofFailed(each.says, each.remedy or "mend that, then install again")
    if unknown := [each for each in found if each.state == "unknown"]:
        raise Incomplete(unknown[0].says, unknown[0].remedy)
    _room(offer)
    return found


def _of(check: Check, whats: tuple[str, ...]) -> bool:
    """Checks are named NODE WHAT."""
    return check.name.partition(" ")[2].split(" ")[0] in whats


def _room(offer: Offer) -> None:
    home = installed.home()
    free = shutil.disk_usage(home).free
    folder = home / "downloads" / str(offer.manifest.number)
    there = sum(each.stat().st_size for each in folder.glob("*")) if folder.is_dir() else 0
    if offer.size - there > free:
        raise PatchqError(
            f"release {offer.manifest.number} does not fit into {home}: it has"
            f" {offer.size / 1e9:.1f} GB, {free / 1e9:.1f} GB are free",
            f"free some space, or {ORIGIN.room}",
        )


def alone_is_too_small(manifest: Manifest, target: Target) -> bool:
    """Whether one machine of the kind is known not to do: it has one GPU, and was tested as one of
    several."""
    graphics = GRAPHICS.get(target.name)
    return graphics is not None and bool(graphics.capability) and len(manifest.tested) > 1
