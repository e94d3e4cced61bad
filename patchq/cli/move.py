"""`patchq move`."""

from __future__ import annotations

from typing import Annotated

import typer

from patchq.cli.complete import patch_names
from patchq.cli.options import DryRun, Json, PatchName, QueueName
from patchq.errors import UsageError


def command(
    name: PatchName,
    before: Annotated[
        str | None,
        typer.Option(
            "--before", metavar="OTHER", help="Apply it before this.", autocompletion=patch_names
        ),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(
            "--after", metavar="OTHER", help="Apply it after this.", autocompletion=patch_names
        ),
    ] = None,
    to_top: Annotated[bool, typer.Option("--to-top", help="Apply it last.")] = False,
    dry_run: DryRun = False,
    queue: QueueName = None,
    json: Json = False,
) -> int:
    """Give a patch another place in the series; the tree stays what it is.

    Where it needs a patch that would then come later (or one needs it), the clashes are named,
    nothing is changed, and the exit status is 4.

    patchq move series-version --after repetition-detection-default

    patchq move dflash-draft-tokens --to-top
    """
    if sum((before is not None, after is not None, to_top)) != 1:
        raise UsageError("move it where?", "give one of --before, --after and --to-top")
    from patchq.cli.rearrange import rearrange
    from patchq.work import order

    return rearrange(
        "move",
        queue,
        json,
        lambda found, bar: order.move(
            found, name, before=before, after=after, dry_run=dry_run, progress=bar
        ),
    )
