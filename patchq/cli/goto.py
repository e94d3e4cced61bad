"""`patchq goto`."""

from __future__ import annotations

from patchq.cli.options import DryRun, Json, PatchName, QueueName
from patchq.cli.worktree import at_work


def command(
    name: PatchName, dry_run: DryRun = False, queue: QueueName = None, json: Json = False
) -> int:
    """Push or pop until NAME is the top patch of the working tree.

    patchq goto series-version

    patchq goto 2
    """
    from patchq.work.move import goto

    return at_work(
        "goto", queue, json, lambda found, bar: goto(found, name, dry_run=dry_run, progress=bar)
    )
