"""`patchq import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchq.cli.options import DryRun, Json, QueueName
from patchq.errors import UsageError


def command(
    what: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE...|A..B]", help="Patch files; with --git, a commit range."),
    ] = None,
    git: Annotated[
        Path | None, typer.Option("--git", metavar="PATH", help="Take commits of this repository.")
    ] = None,
    quilt: Annotated[
        Path | None, typer.Option("--quilt", metavar="DIR", help="Take a quilt folder.")
    ] = None,
    dry_run: DryRun = False,
    queue: QueueName = None,
    json: Json = False,
) -> None:
    """Bring patches in on top of the series, in canonical form.

    Fields that would run something (Patchq-Check, Patchq-Drop-When) are not taken.

    patchq import fix.patch more.mbox

    patchq import --quilt ~/old/patches

    patchq import --git ~/src/demo v1.0..my-fixes
    """
    given = what or []
    if git is not None and len(given) != 1:
        raise UsageError("--git needs one range of commits", "patchq import --git PATH A..B")
    if quilt is not None and (given or git is not None):
        raise UsageError("--quilt stands alone", "patchq import --quilt DIR")
    if not given and quilt is None:
        raise UsageError("import what?", "name files, --quilt DIR, or --git PATH A..B")
    from patchq.carry.bring import bring
    from patchq.carry.workspace import read_queue, writing
    from patchq.cli.out import give, say
    from patchq.render import jsons
    from patchq.render.console import lines, text
    from patchq.render.progress import Bar

    with writing(Path.cwd(), "import") as (project, recovered):
        say(recovered)
        with Bar() as bar:
            report = bring(
                read_queue(project, queue),
                files=[Path(name) for name in given] if git is None else (),
                quilt=quilt,
                git=str(git) if git is not None else None,
                commits=given[0] if git is not None else "",
                dry_run=dry_run,
                progress=bar,
            )
    for name, field in report.left_out:
        say(f"{name}: not taken from outside: {field}")
    verb = "would come in" if report.dry_run else "came in"
    told = "\n".join(f"{patch.file}  {patch.header.subject}" for patch in report.patches)
    give(
        json,
        lambda: jsons.imported(report),
        lambda: text("").append(lines(f"{told}\n{len(report.patches)} {verb}; {report.tree}")),
    )
