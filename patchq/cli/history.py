"""`patchq history`."""

from __future__ import annotations

from pathlib import Path

from patchq.cli.options import Json, MaybePatchName, QueueName


def command(name: MaybePatchName = None, queue: QueueName = None, json: Json = False) -> None:
    """What was done to the queue; with a name, what became of that patch, dropped or not.

    patchq history

    patchq history series-version
    """
    from patchq.carry.inspect import history
    from patchq.carry.workspace import read_queue, reading
    from patchq.cli.out import give, say
    from patchq.render import jsons

    project, recovered = reading(Path.cwd(), "history")
    say(recovered)
    report = history(project, read_queue(project, queue), name)

    def drawing() -> object:
        from patchq.render import tables

        return tables.history(report)

    give(json, lambda: jsons.history(report), drawing)
