"""`patchq report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchq.cli.options import Json, Offline, QueueName


def command(
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="DIR", help="Write the page into this folder."),
    ] = None,
    queue: QueueName = None,
    nights: Annotated[
        Path | None,
        typer.Option(
            "--nights", metavar="DIR", help="Where nights are kept (as ci/nightly.toml says)."
        ),
    ] = None,
    offline: Offline = False,
    json: Json = False,
) -> int:
    """Say where the queue stands: patches, pull requests, releases, nights, drift, downloads.

    With --html as one page that asks nobody for anything and can be put anywhere. Exit status 6
    where upstream or the forge did not answer: the page says what is missing.

    patchq report --html site

    patchq report --offline --json
    """
    from patchq.carry.workspace import read_queue, reading
    from patchq.cli.out import give, say
    from patchq.nightly import page_asked
    from patchq.render import page, page_json, page_words
    from patchq.render.progress import Bar

    project, recovered = reading(Path.cwd(), "report")
    say(recovered)
    with Bar() as bar:
        found = page_asked.whole(
            read_queue(project, queue), nights=nights, offline=offline, progress=bar
        )
    written: dict[str, int] = {}
    if html is not None:
        from patchq.gitstore.files import write

        for name, data in page.files(found).items():
            write(html / name, data)
            written[str(html / name)] = len(data)
            say(f"{html / name} is written")
    give(json, lambda: page_json.as_json(found, written), lambda: page_words.drawn(found))
    return found.exit_code
