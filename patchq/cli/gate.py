"""`patchq gate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchq.cli.complete import runners
from patchq.cli.options import Json


def command(
    runner: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUNNER]",
            help="The start of a runner lock's digest, or a release's number (the present lock).",
            autocompletion=runners,
        ),
    ] = None,
    evidence: Annotated[
        Path | None,
        typer.Option(
            "--evidence",
            metavar="DIR",
            help="Where smoke.json, bench.json and compare.json lie (build/evidence/LOCK).",
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write the report as one page, too."),
    ] = None,
    json: Json = False,
) -> int:
    """Say whether a runner may be released, by the evidence that smoke, bench and compare left.

    Nothing is asked and nothing is run. The rules stand in ci/gate.toml. Exit status 5 where
    evidence does not hold, 6 where some is missing or was not finished.

    patchq gate

    patchq gate 948a545f --html report.html

    patchq gate 3 --evidence evidence/
    """
    from patchq.cli.out import give, say
    from patchq.config import find_project
    from patchq.render import gate
    from patchq.smoke.gate import examine

    found = examine(find_project(Path.cwd()), runner, evidence)
    if html is not None:
        from patchq.gitstore.files import write
        from patchq.render.report_html import page

        write(html, page(found).encode("utf-8"))
        say(f"{html} is written")
    give(json, lambda: gate.as_json(found), lambda: gate.drawn(found))
    return found.gate.exit_code
