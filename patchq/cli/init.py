"""`patchq init`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchq.cli.options import Json
from patchq.errors import UsageError


def command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call the queue.")],
    base: Annotated[
        str, typer.Option("--base", metavar="RELEASE", help="A version, tag, branch or commit.")
    ],
    git: Annotated[
        str | None, typer.Option("--git", metavar="URL_OR_PATH", help="Upstream is this git.")
    ] = None,
    index: Annotated[
        str | None, typer.Option("--index", metavar="PACKAGE", help="Upstream is this package.")
    ] = None,
    json: Json = False,
) -> None:
    """Make a queue in the current git repository.

    The base is a release of the package, or a tag, branch or commit of the repository:

    patchq init vllm --index vllm --base 0.29.0

    patchq init demo --git ~/src/demo --base v1.0
    """
    if (git is None) == (index is None):
        raise UsageError("name one upstream", "give either --git URL_OR_PATH or --index PACKAGE")
    from patchq.carry.start import init
    from patchq.carry.workspace import writing
    from patchq.cli.out import give, say
    from patchq.render import jsons
    from patchq.render.console import text
    from patchq.render.progress import Bar

    here = Path.cwd()
    with writing(here, "init") as (project, recovered):
        say(recovered)
        with Bar() as bar:
            report = init(project, name, git=git, package=index, base=base, cwd=here, progress=bar)
    give(
        json,
        lambda: jsons.init(report),
        lambda: text(
            f"The queue {report.queue} stands on {report.base.name}: {report.file},"
            f" {report.series}/series. Bring patches in with `patchq import`, or write"
            " one: `patchq new NAME`."
        ),
    )
