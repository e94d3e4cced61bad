"""`patchq split`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from patchq.cli.options import DryRun, Json, PatchName, QueueName


def command(
    name: PatchName,
    new: Annotated[str, typer.Option("--as", metavar="NEW", help="The new patch's name.")],
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- PATH...]", help="Files or folders that go into it."),
    ] = None,
    hunks: Annotated[
        str | None,
        typer.Option("--hunks", metavar="1,3-5", help="Hunks that go into it, in their order."),
    ] = None,
    after: Annotated[
        bool, typer.Option("--after", help="Put it after the patch, not before.")
    ] = False,
    subject: Annotated[
        str | None, typer.Option("--subject", metavar="TEXT", help="The new patch's subject.")
    ] = None,
    dry_run: DryRun = False,
    queue: QueueName = None,
    json: Json = False,
) -> int:
    """Take files or hunks of a patch into a new one beside it; the tree stays what it is.

    The new patch stands just before the old one and has a copy of its header, but for its checks.
    Without paths and hunks the error lists what there is to choose.

    patchq split series-version --as version-tests -- tests

    patchq split series-version --as version-route --hunks 1,3 --after
    """
    from patchq.cli.rearrange import rearrange
    from patchq.work import split

    part = split.Part(
        tuple(os.fsencode(path) for path in paths or ()),
        split.numbers(hunks) if hunks is not None else frozenset(),
    )
    return rearrange(
        "split",
        queue,
        json,
        lambda found, bar: split.split(
            found, name, new, part, after=after, subject=subject, dry_run=dry_run, progress=bar
        ),
    )
