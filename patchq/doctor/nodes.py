"""The nodes of a cluster: whether each can run the runner, and whether they agree."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from patchq.cluster import facts, nodes, probe
from patchq.cluster.config import Cluster, Kind, Node
from patchq.cluster.facts import Facts, File
from patchq.cluster.shell import Shell
from patchq.doctor import agreement, machine, wiring
from patchq.doctor.model import Check, of_error
from patchq.errors import PatchqError
from patchq.progress import SILENT, Progress


def check(
    cluster: Cluster,
    given: Mapping[Kind, Path] | None = None,
    *,
    full: bool = False,
    root: str = "/",
    progress: Progress = SILENT,
) -> tuple[Check, ...]:
    """Ask all nodes at once, judge each, compare them.

    `given`: what runs there, by its paths on this machine (of a path that is not there, only the
    name counts). `full` compares whole files, not sizes and headers. `root`: see `facts.ask`.
    """
    given = {kind: Path(os.path.abspath(path)) for kind, path in (given or {}).items()}
    progress.step(f"asking the nodes of {cluster.name}", 0, len(cluster.nodes), "nodes")

    def asked(node: Node, there: Shell) -> Facts:
        files: dict[str, str] = {kind: node.place(kind, path) for kind, path in given.items()}
        return facts.ask(there, cluster, node, files, full=full, root=root)

    answers = nodes.on_all(cluster, asked)
    checks: list[Check] = []
    answered: list[tuple[Node, Facts]] = []
    for node, answer in zip(cluster.nodes, answers, strict=True):
        if isinstance(answer, PatchqError):
            checks.append(of_error(node.name, answer))
        else:
            answered.append((node, answer))
            checks += judge(cluster, node, answer, given.get("artifact"))
    for kind, path in given.items():
        try:
            here = _here(path, full, cluster)
        except PatchqError as problem:
            checks.append(of_error(kind, problem))
        else:
            checks += agreement.of_files(kind, path.name, here, answered)
    return (*checks, *agreement.of_machines(answered))


def judge(
    cluster: Cluster, node: Node, found: Facts, artifact: Path | None = None
) -> tuple[Check, ...]:
    """What one node's answer means: its faults, or one line if there are none."""
    faults: list[Check] = []
    sound: list[str] = []
    for finding in (
        *machine.findings(cluster, node, found, artifact),
        *wiring.findings(cluster, node, found),
    ):
        if isinstance(finding, Check):
            faults.append(finding)
        else:
            sound.append(finding)
    if any(fault.state != "note" for fault in faults):
        return tuple(faults)
    return (Check(node.name, "ok", ", ".join(sound)), *faults)


def _here(path: Path, full: bool, cluster: Cluster) -> tuple[File, ...] | None:
    """What is on this machine, listed as the nodes list theirs; None where nothing is."""
    if all(node.ssh is None for node in cluster.nodes):
        return None
    try:
        found = probe.listing(str(path), full)
    except OSError as problem:
        raise PatchqError(f"{path}: {problem.strerror or problem}", "mend or download it") from None
    return None if found is None else tuple(File(*entry) for entry in found)
