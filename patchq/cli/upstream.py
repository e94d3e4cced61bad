"""`patchq upstream`: where releases and history come from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchq.cli.options import Json, QueueName

ABOUT = """Where releases and history come from.

The sources stand in upstream/NAME.toml: the first one gives the releases; a git one gives the
history, from which a sync learns what landed, what was reverted, and what caused a conflict.

patchq upstream add-git https://github.com/vllm-project/vllm
"""


def add_git(
    url: Annotated[str, typer.Argument(metavar="URL", help="A git URL, or the path of a clone.")],
    queue: QueueName = None,
    json: Json = False,
) -> None:
    """Add a git repository to a queue that lives on archives, for its history.

    It must have the release that the queue stands on as a tag, with the very same files. A URL is
    fetched without file contents; a clone that is given by its path is read in place.

    patchq upstream add-git https://github.com/vllm-project/vllm

    patchq upstream add-git ../vllm --queue vllm
    """
    from patchq.carry.addgit import add_git as add
    from patchq.carry.workspace import read_queue, writing
    from patchq.cli.out import give, say
    from patchq.render import sessions, sessions_json
    from patchq.render.progress import Bar

    here = Path.cwd()
    with writing(here, "upstream add-git") as (project, recovered):
        say(recovered)
        with Bar() as bar:
            report = add(read_queue(project, queue), url, here, progress=bar)
    give(json, lambda: sessions_json.added_git(report), lambda: sessions.added_git(report))


commands = {"add-git": add_git}
