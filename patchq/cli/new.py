"""`patchq new`."""

from __future__ import annotations

from typing import Annotated

import typer

from patchq.cli.options import DryRun, Json, QueueName
from patchq.cli.worktree import at_work


def command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new patch's name.")],
    subject: Annotated[
        str, typer.Option("-m", "--message", metavar="SUBJECT", help="Its subject.")
    ] = "",
    dry_run: DryRun = False,
    queue: QueueName = None,
    json: Json = False,
) -> int:
    """Add an empty patch after the top one; edits in the working tree go in by `patchq refresh`.

    Without a working tree one is made with all patches applied, and the new one is the last.
    `patchq edit NAME` writes its header.

    patchq new hide-key-file -m "Do not log the path of the TLS key"
    """
    from patchq.work.new import new

    return at_work(
        "new",
        queue,
        json,
        lambda found, bar: new(found, name, subject, dry_run=dry_run, progress=bar),
    )
