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
    from patchq.carry.sync import sync
    from patchq.carry.workspace import read_queue, writing
    from patchq.cli.out import give
    from patchq.render import jsons
    from patchq.render.progress import Bar

    with writing(Path.cwd(), "sync") as (project, recovered), Bar() as bar:
        report = sync(
            read_queue(project, queue),
            onto=onto,
            dry_run=dry_run,
            offline=offline,
            refresh=refresh,
            recovered=recovered,
            progress=bar,
        )
        if markdown is not None or commit:
            from patchq.render import markdown as md

            text = md.sync(report)
            if markdown is not None:
                markdown.write_text(text, encoding="utf-8", errors="surrogateescape")
            if commit and report.recorded:
                from patchq.carry.commits import commit_sync

                commit_sync(project, report, text)

    def drawing() -> object:
        from patchq.render import tables

        return tables.sync(report)

    give(json, lambda: jsons.sync(report), drawing)
    return report.exit_code
