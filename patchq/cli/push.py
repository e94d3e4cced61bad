"""`patchq push`."""

from __future__ import annotations

from typing import Annotated

import typer

from patchq.cli.complete import unapplied_names
from patchq.cli.options import DryRun, Json, QueueName
from patchq.cli.worktree import Everything, at_work


def command(
    where: Annotated[
        str | None,
        typer.Argument(
            metavar="[N|NAME]",
            help="How many patches, or up to which one; without it the next.",
            autocompletion=unapplied_names,
        ),
    ] = None,
    everything: Everything = False,
    dry_run: DryRun = False,
    queue: QueueName = None,
    json: Json = False,
) -> int:
    """Apply the next patch, the next N, those up to NAME, or all, in the working tree.

    The tree is .git/patchq/work/QUEUE/tree; the first push makes it. A patch that does not
    apply is merged; where that conflicts both sides stand in the files (exit status 4): resolve
    them and `patchq refresh`, or give the patch up with `patchq pop`.

    patchq push

    patchq push -a

    patchq push 3
    """
    from patchq.work.move import push

    return at_work(
        "push",
        queue,
        json,
        lambda found, bar: push(found, where, everything=everything, dry_run=dry_run, progress=bar),
    )
