"""Options that many commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchq.cli.complete import cluster_names, held_names, patch_names, queue_names


def queue_here(queue: str | None) -> str | None:
    """The queue that was named, or the one whose tree the current folder is in."""
    here = Path.cwd()
    if queue is not None or ".git" not in here.parts:
        return queue
    from patchq.config import find_project
    from patchq.work.look import queue_around

    return queue_around(find_project(here), here)


QueueName = Annotated[
    str | None,
    typer.Option(
        "--queue",
        metavar="NAME",
        help="The queue to work on.",
        autocompletion=queue_names,
        callback=queue_here,
    ),
]
InstalledCluster = Annotated[
    str | None,
    typer.Argument(
        metavar="[C]", help="The cluster; left out, the only one.", autocompletion=cluster_names
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Offline = Annotated[bool, typer.Option("--offline", help="Use what is here; ask no network.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would happen; change nothing.")]
PatchName = Annotated[
    str, typer.Argument(metavar="NAME", help="A patch.", autocompletion=patch_names)
]
MaybePatchName = Annotated[
    str | None, typer.Argument(metavar="[NAME]", help="A patch.", autocompletion=patch_names)
]
HeldName = Annotated[
    str, typer.Argument(metavar="NAME", help="A held patch.", autocompletion=held_names)
]
Why = Annotated[str, typer.Option("--why", metavar="TEXT", help="Why; it is recorded.")]
