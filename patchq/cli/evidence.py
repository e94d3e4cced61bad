"""What smoke, bench and compare share: what their findings are bound to, and where they go."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from patchq.config import Project
    from patchq.smoke.evidence import Kind
    from patchq.smoke.identity import Identity
    from patchq.smoke.nodes import Nodes


def identified(project: Project, nodes: Nodes) -> Identity | None:
    """What runs there; None, and a line that says why, where that cannot be told."""
    from patchq.cli.out import say
    from patchq.errors import Incomplete, PatchqError
    from patchq.smoke.identify import identify

    try:
        return identify(project, nodes.cluster, nodes.profile, nodes.reach)
    except Incomplete:
        raise
    except PatchqError as problem:
        say(f"this will be no evidence: {problem.message} -> {problem.hint}")
        return None


def keep(
    kind: Kind,
    value: dict[str, Any],
    runner: Identity | None,
    out: Path | None,
    *,
    whole: bool = True,
) -> None:
    """As evidence of the runner, or in the file `out`; what is not whole stands beside the rest."""
    from patchq.cli.out import say
    from patchq.config import find_project
    from patchq.gitstore.files import write
    from patchq.render.jsons import dump
    from patchq.smoke import evidence

    if out is not None:
        write(out, (dump(evidence.bound(runner, value)) + "\n").encode())
    elif runner is not None:
        root = find_project(Path.cwd()).root
        beside = None if whole else evidence.folder(root, runner.lock) / f"{kind}.partial.json"
        say(f"kept: {evidence.keep(root, runner, kind, value, out=beside)}")
