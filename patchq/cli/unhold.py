"""`patchq unhold`."""

from __future__ import annotations

from patchq.cli.options import DryRun, HeldName, Json, QueueName


def command(
    name: HeldName, dry_run: DryRun = False, queue: QueueName = None, json: Json = False
) -> int:
    """Apply a held patch again, in its place.

    Later patches are carried over it. Where lines changed that it needs, the clashes are named,
    nothing is changed, and the exit status is 4.

    patchq unhold dflash-draft-tokens
    """
    from patchq.cli.rearrange import rearrange
    from patchq.work import order

    return rearrange(
        "unhold",
        queue,
        json,
        lambda found, bar: order.unhold(found, name, dry_run=dry_run, progress=bar),
    )
