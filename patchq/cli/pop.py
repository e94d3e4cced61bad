"""`patchq pop`."""

from __future__ import annotations

from typing import Annotated

import typer

from patchq.cli.complete import applied_names
from patchq.cli.options import DryRun, Json, QueueName
from patchq.cli.worktree import Everything, at_work


def command(
    where: Annotated[
        str | None,
        typer.Argument(
            metavar="[N|NAME]",
            help="How many patches, or down to which one; without it the top.",
            autocompletion=applied_names,
        ),
    ] = None,
    everything: Everything = False,
    dry_run: DryRun = False,
    queue: QueueName = None,
    json: Json = False,
) -> int:
    """Take off the top patch, the top N, those above NAME, or all, in the working tree.

    Edits that are not refreshed are never overwritten. A patch whose conflict is open is given
    up: the files go back, and what was resolved is kept as a commit.

    patchq pop

    patchq pop -a

    patchq pop series-version
    """
    from patchq.work.move import pop

    return at_work(
        "pop",
        queue,
        json,
        lambda found, bar: pop(found, where, everything=everything, dry_run=dry_run, progress=bar),
    )
