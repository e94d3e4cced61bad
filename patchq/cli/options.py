"""Options that many commands have."""

from __future__ import annotations

from typing import Annotated

import typer

from patchq.cli.complete import held_names, patch_names, queue_names

QueueName = Annotated[
    str | None,
    typer.Option(
        "--queue", metavar="NAME", help="The queue to work on.", autocompletion=queue_names
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
