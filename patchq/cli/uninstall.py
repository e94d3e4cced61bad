"""`patchq uninstall`."""

from __future__ import annotations

from typing import Annotated

import typer

from patchq.cli.options import DryRun, Json


def command(
    keep_models: Annotated[
        bool, typer.Option("--keep-models", help="Leave the models that were fetched.")
    ] = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> int:
    """Stop what runs, and remove all that `patchq install` brought, from all machines.

    Models that were there before stay. Exit status 6 where a machine was not reached: run it again.

    patchq uninstall --dry-run
    """
    from patchq.cli.out import give
    from patchq.release import uninstall as removal
    from patchq.render import install as render
    from patchq.render.progress import Bar

    with Bar() as bar:
        report = removal.uninstall(keep_models=keep_models, dry_run=dry_run, progress=bar)
    try:
        give(json, lambda: render.uninstalled_json(report), lambda: render.uninstalled(report))
    finally:
        removal.last(report)
    return report.exit_code
