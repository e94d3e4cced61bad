"""`patchq graph`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchq.cli.options import Json, MaybePatchName, QueueName
from patchq.errors import UsageError


def command(
    name: MaybePatchName = None,
    dot: Annotated[bool, typer.Option("--dot", help="Print a graph for graphviz.")] = False,
    queue: QueueName = None,
    json: Json = False,
) -> None:
    """Which patch needs which earlier one, directly; with a name, only around that patch.

    A patch needs another one's lines ("its lines": they cannot be exchanged), lines around its
    changes, or the file. Whatever set of patches holds all that it needs applies by itself.

    patchq graph

    patchq graph series-version

    patchq graph --dot | dot -Tsvg > series.svg
    """
    if dot and json:
        raise UsageError("--dot and --json are two forms", "give one of them")
    from patchq.carry.workspace import read_queue, reading
    from patchq.cli.out import give, say
    from patchq.render import graph as drawn
    from patchq.render.progress import Bar
    from patchq.work.graph import graph

    project, recovered = reading(Path.cwd(), "graph")
    say(recovered)
    with Bar() as bar:
        report = graph(read_queue(project, queue), name, progress=bar)
    if dot:
        typer.echo(drawn.dot(report))
    else:
        give(json, lambda: drawn.as_json(report), lambda: drawn.draw(report))
