"""`patchq decide`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchq.cli.complete import answers
from patchq.cli.options import Json, Offline, PatchName, QueueName
from patchq.errors import UsageError


def command(
    name: PatchName,
    answer: Annotated[
        str,
        typer.Argument(metavar="keep|drop", help="What to do with it.", autocompletion=answers),
    ],
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="Why; it is recorded.")],
    onto: Annotated[
        str, typer.Option("--onto", metavar="RELEASE", help="The release that the sync was for.")
    ] = "latest",
    offline: Offline = False,
    queue: QueueName = None,
    json: Json = False,
) -> int:
    """Answer what a sync asked about a patch; the open session goes on with it, or the next sync.

    The answer is recorded with the evidence that it was given on, and asked again once that
    evidence changes.

    patchq decide old-fix drop --why "upstream's version does the same"
    """
    if answer not in ("keep", "drop"):
        raise UsageError(f"{answer!r} is no answer", "say keep or drop")
    from patchq.carry.decide import decide
    from patchq.carry.workspace import read_queue, writing
    from patchq.cli.out import give, say
    from patchq.cli.sync import follow_along
    from patchq.render import jsons
    from patchq.render.console import text
    from patchq.render.progress import Bar

    with writing(Path.cwd(), "decide") as (project, recovered):
        say(recovered)
        with Bar() as bar:
            report = decide(
                read_queue(project, queue),
                name,
                answer,
                why,
                onto=onto,
                offline=offline,
                progress=bar,
            )
        follow_along(project, queue, report.sync)

    def drawing() -> object:
        said = f"{report.name}: {report.answer} on {report.onto}, because: {report.why}."
        if report.sync is None:
            return text(f"{said} The next sync acts on it.")
        from rich.console import Group

        from patchq.render import tables

        return Group(text(said), tables.sync(report.sync))

    give(json, lambda: jsons.decided(report), drawing)
    return report.exit_code
