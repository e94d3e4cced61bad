"""`patchq export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchq.cli.options import Json, QueueName
from patchq.errors import UsageError


def command(
    git: Annotated[
        Path | None, typer.Option("--git", metavar="PATH", help="Into this repository.")
    ] = None,
    branch: Annotated[
        str | None, typer.Option("--branch", metavar="NAME", help="The branch to write.")
    ] = None,
    mbox: Annotated[
        Path | None, typer.Option("--mbox", metavar="FILE", help="Write mails, one a patch.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the branch or file.")] = False,
    queue: QueueName = None,
    json: Json = False,
) -> None:
    """Write the queue to a branch (the base, then one commit a patch) or to an mbox.

    Fields that a commit does not have become trailers; `patchq import` reads them back.

    patchq export --git ~/src/vllm --branch patchq

    patchq export --mbox series.mbox

    git -C ~/src/vllm am --keep-cr --keep-non-patch "$PWD/series.mbox"
    """
    if mbox is not None and (git is not None or branch is not None):
        raise UsageError("--mbox stands alone", "patchq export --mbox FILE")
    if mbox is None and (git is None or branch is None):
        raise UsageError("export where?", "give --git PATH --branch NAME, or --mbox FILE")
    from patchq.carry.export import export, export_mbox
    from patchq.carry.workspace import read_queue, reading
    from patchq.cli.out import give, say
    from patchq.render import jsons
    from patchq.render.console import text
    from patchq.render.progress import Bar

    project, recovered = reading(Path.cwd(), "export")
    say(recovered)
    found = read_queue(project, queue)
    if mbox is not None:
        written = export_mbox(found, mbox, force=force)
        give(
            json,
            lambda: jsons.exported_mbox(written),
            lambda: text(f"{written.file}: {written.patches} patches on {written.base}"),
        )
        return
    assert git is not None and branch is not None
    with Bar() as bar:
        report = export(found, git, branch, force=force, progress=bar)
    give(
        json,
        lambda: jsons.exported(report),
        lambda: text(
            f"{report.branch} in {report.repository}: {report.patches} commits on {report.base},"
            f" {report.commit}"
        ),
    )
