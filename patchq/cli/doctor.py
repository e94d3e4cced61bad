"""`patchq doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchq.cli.complete import cluster_names
from patchq.cli.options import Json, Offline, QueueName


def command(
    model: Annotated[
        Path | None, typer.Option("--model", metavar="DIR", help="A checkpoint.")
    ] = None,
    draft: Annotated[
        Path | None, typer.Option("--draft", metavar="DIR", help="A drafter, for that checkpoint.")
    ] = None,
    template: Annotated[
        Path | None, typer.Option("--template", metavar="FILE", help="A chat template.")
    ] = None,
    artifact: Annotated[
        Path | None,
        typer.Option(
            "--artifact", metavar="FILE", help="A wheel, or the folder that it is installed in."
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            metavar="C",
            help="The nodes of ci/clusters/C.toml.",
            autocompletion=cluster_names,
        ),
    ] = None,
    draft_tokens: Annotated[
        int | None,
        typer.Option("--draft-tokens", metavar="N", min=1, help="How many are to be drafted."),
    ] = None,
    tp: Annotated[
        int | None,
        typer.Option("--tp", metavar="N", min=1, max=64, help="Tensor parallel: how many ranks."),
    ] = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="On the nodes compare whole files, not sizes and headers."),
    ] = False,
    write_goldens: Annotated[
        bool,
        typer.Option(
            "--write-goldens", help="Keep what --template renders as what it has to render."
        ),
    ] = False,
    offline: Offline = False,
    queue: QueueName = None,
    json: Json = False,
) -> int:
    """Say beforehand whether it will run: before a build, a deployment, a start.

    What is named is looked at, and held against the runner: the one of --artifact, else the series
    here on its base. Nothing is loaded; of a checkpoint the headers are read. Exit status 5 where
    something is fatal, 6 where something could not be found out.

    patchq doctor --model ~/models/GLM-5.3-Flash-tp2 --tp 2

    patchq doctor --model DIR --draft DIR --draft-tokens 7 --template chat_template.jinja

    patchq doctor --cluster sparks --model GLM-5.3-Flash-tp2
    """
    from patchq.cli.out import give, say
    from patchq.doctor.examine import Asked, examine, here
    from patchq.doctor.examine import write_goldens as write
    from patchq.errors import UsageError
    from patchq.render import doctor
    from patchq.render.progress import Bar

    if write_goldens:
        if template is None:
            raise UsageError("--write-goldens of which template?", "name it with --template FILE")
        say(f"{write(template, Path.cwd())} is written; read it before you commit it")
    asked = Asked(model, draft, template, artifact, cluster, draft_tokens, tp, full)
    around = here(Path.cwd(), queue)
    say(around.recovered)
    with Bar() as bar:
        found = examine(asked, around, offline=offline, progress=bar)
    give(json, lambda: doctor.as_json(found), lambda: doctor.drawn(found))
    return found.exit_code
