"""`patchq show`."""

from __future__ import annotations

import sys
from pathlib import Path

from patchq.cli.options import Json, PatchName, QueueName


def command(name: PatchName, queue: QueueName = None, json: Json = False) -> None:
    """Show one patch: header, text and diff. NAME is its name, number or file.

    A pipe gets the patch's file, byte for byte.

    patchq show series-version

    patchq show 2 > fix.patch
    """
    from patchq.carry.workspace import read_queue, reading
    from patchq.cli.out import give, say
    from patchq.render import jsons

    project, recovered = reading(Path.cwd(), "show")
    say(recovered)
    found = read_queue(project, queue)
    patch = found.series.find(name)
    held = found.series.held.get(patch.name)

    if held is not None and not json and not sys.stdout.isatty():
        say(f"held: {held}")

    def drawing() -> object:
        from patchq.render import tables

        return tables.show(patch, held)

    give(json, lambda: jsons.show(found.config.name, patch, held), drawing, raw=patch.text)
