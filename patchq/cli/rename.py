"""`patchq rename`."""

from __future__ import annotations

from typing import Annotated

import typer

from patchq.cli.options import DryRun, Json, PatchName, QueueName


def command(
    name: PatchName,
    new: Annotated[str, typer.Argument(metavar="NEW", help="Its new name.")],
    dry_run: DryRun = False,
    queue: QueueName = None,
    json: Json = False,
) -> int:
    """Give a patch another name; its number and its place stay.

    patchq rename series-version say-the-series
    """
    from patchq.cli.rearrange import rearrange
    from patchq.work import edit

    return rearrange(
        "rename",
        queue,
        json,
        lambda found, bar: edit.rename(found, name, new, dry_run=dry_run, progress=bar),
    )
