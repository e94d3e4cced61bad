"""`patchq hold`."""

from __future__ import annotations

from patchq.cli.options import DryRun, Json, PatchName, QueueName, Why


def command(
    name: PatchName, why: Why, dry_run: DryRun = False, queue: QueueName = None, json: Json = False
) -> int:
    """Keep a patch in the series without applying it; every sync names it.

    Later patches are carried as if it was not there; where one needs it, nothing is changed and the
    exit status is 4.

    patchq hold dflash-draft-tokens --why "wait for the answer upstream"
    """
    from patchq.cli.rearrange import rearrange
    from patchq.work import order

    return rearrange(
        "hold",
        queue,
        json,
        lambda found, bar: order.hold(found, name, why, dry_run=dry_run, progress=bar),
    )
