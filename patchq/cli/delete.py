"""`patchq delete`."""

from __future__ import annotations

from patchq.cli.options import DryRun, Json, PatchName, QueueName, Why


def command(
    name: PatchName, why: Why, dry_run: DryRun = False, queue: QueueName = None, json: Json = False
) -> int:
    """Take a patch out of the series; it is kept in retired/, with the reason.

    Later patches are carried onto the series without it. Where one of them needs it, all that do
    are named, nothing is changed, and the exit status is 4.

    patchq delete spec-acceptance --why "nobody reads it"

    patchq history spec-acceptance
    """
    from patchq.cli.rearrange import rearrange
    from patchq.work import order

    return rearrange(
        "delete",
        queue,
        json,
        lambda found, bar: order.delete(found, name, why, dry_run=dry_run, progress=bar),
    )
