"""`patchq show`."""

from __future__ import annotations

from pathlib import Path

from patchq.cli.options import Json, PatchName, QueueName


def command(name: PatchName, queue: QueueName = None, json: Json = False) -> None:
    """Show one patch: header, text and diff. NAME is its name, number or file.

    patchq show series-version

    patchq show 2 --json
    """
    from patchq.carry.workspace import read_queue, reading
    from patchq.cli.out import give, say
    from patchq.render import jsons

    project, recovered = reading(Path.cwd(), "show")
    say(recovered)
    found = read_queue(project, queue)
    patch = found.series.find(name)
    held = found.series.held.get(patch.name)

    def drawing() -> object:
        from patchq.render import tables

        return tables.show(patch, held)

    give(json, lambda: jsons.show(found.config.name, patch, held), drawing)
