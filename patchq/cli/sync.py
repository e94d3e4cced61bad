"""`patchq sync`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchq.cli.options import DryRun, Json, Offline, QueueName


def command(
    onto: Annotated[
        str, typer.Option("--onto", metavar="RELEASE", help="A version, tag, commit, or latest.")
    ] = "latest",
    dry_run: DryRun = False,
    offline: Offline = False,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Ask for releases even if it was just asked.")
    ] = False,
    markdown: Annotated[
        Path | None,
        typer.Option("--markdown", metavar="FILE", help="Write the report as Markdown too."),
    ] = None,
    commit: Annotated[
        bool, typer.Option("--commit", help="Commit series/ and upstream/ with the report.")
    ] = False,
    queue: QueueName = None,
    json: Json = False,
) -> int:
    """Carry the series onto a release of upstream, prove the result, and record it.

    Nothing is written unless every patch has an answer and the proof holds. Exit status: 0 done,
    4 a decision is needed, 5 the proof failed, 6 upstream was not reached.

    patchq sync

    patchq sync --onto 0.30.0 --dry-run
    """
    from patchq.carry.sync import idle, sync
    from patchq.carry.workspace import quiet_queue, read_queue, writing
    from patchq.cli.out import give
    from patchq.render import jsons
    from patchq.render.progress import Bar

    here = Path.cwd()
    with Bar() as bar:
        calm = quiet_queue(here, queue)
        report = idle(calm, onto=onto, offline=offline, refresh=refresh) if calm else None
        if report is None:
            with writing(here, "sync") as (project, recovered):
                report = sync(
                    read_queue(project, queue),
                    onto=onto,
                    dry_run=dry_run,
                    offline=offline,
                    recovered=recovered,
                    progress=bar,
                )
                if commit and report.recorded:
                    from patchq.carry.commits import commit_sync
                    from patchq.render.markdown import sync as as_markdown

                    commit_sync(project, report, as_markdown(report))
    if markdown is not None:
        from patchq.render.markdown import sync as as_markdown

        markdown.write_text(as_markdown(report), encoding="utf-8", errors="surrogateescape")

    def drawing() -> object:
        from patchq.render import tables

        return tables.sync(report)

    give(json, lambda: jsons.sync(report), drawing)
    return report.exit_code
