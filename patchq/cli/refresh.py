"""`patchq refresh`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchq.cli.complete import applied_names
from patchq.cli.options import DryRun, Json, QueueName
from patchq.cli.worktree import Paths, at_work


def command(
    paths: Paths = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="NAME",
            help="Into this applied patch instead of the top one.",
            autocompletion=applied_names,
        ),
    ] = None,
    dry_run: DryRun = False,
    queue: QueueName = None,
    json: Json = False,
) -> int:
    """Take the edits of the working tree into the top patch.

    New files are taken too, whatever .gitignore says; what builds, patch programs and editors
    leave behind is named and left out. The patches above are carried; one that conflicts stays as
    it was and is named: `patchq push` shows its conflict when it comes to it. After a push that
    conflicted, refresh completes it.

    patchq refresh

    patchq refresh vllm/config --name series-version
    """
    from patchq.work.look import paths_in
    from patchq.work.refresh import refresh

    return at_work(
        "refresh",
        queue,
        json,
        lambda found, bar: refresh(
            found,
            paths_in(found, Path.cwd(), paths or []),
            name=name,
            dry_run=dry_run,
            progress=bar,
        ),
    )
