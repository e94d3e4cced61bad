"""`patchq export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchq.cli.options import Json, QueueName


def command(
    git: Annotated[Path, typer.Option("--git", metavar="PATH", help="Into this repository.")],
    branch: Annotated[str, typer.Option("--branch", metavar="NAME", help="The branch to write.")],
    force: Annotated[bool, typer.Option("--force", help="Replace the branch.")] = False,
    queue: QueueName = None,
    json: Json = False,
) -> None:
    """Write the queue to a branch: the base, then one commit a patch.

    patchq export --git ~/src/vllm --branch patchq
    """
    from patchq.carry.export import export
    from patchq.carry.workspace import read_queue, reading
    from patchq.cli.out import give, say
    from patchq.render import jsons
    from patchq.render.console import text
    from patchq.render.progress import Bar

    project, recovered = reading(Path.cwd(), "export")
    say(recovered)
    with Bar() as bar:
        report = export(read_queue(project, queue), git, branch, force=force, progress=bar)
    give(
        json,
        lambda: jsons.exported(report),
        lambda: text(
            f"{report.branch} in {report.repository}: {report.patches} commits on {report.base},"
            f" {report.commit}"
        ),
    )
