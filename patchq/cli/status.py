"""`patchq status`."""

from __future__ import annotations

from pathlib import Path

from patchq.cli.options import Json, QueueName


def command(queue: QueueName = None, json: Json = False) -> None:
    """Where the queue stands, without asking anybody outside.

    patchq status
    """
    from patchq.carry.inspect import status
    from patchq.carry.workspace import read_queue, reading
    from patchq.cli.out import give, say
    from patchq.render import jsons

    project, recovered = reading(Path.cwd(), "status")
    say(recovered)
    report = status(read_queue(project, queue), recovered)

    def drawing() -> object:
        from patchq.render import tables

        return tables.status(report)

    give(json, lambda: jsons.status(report), drawing)
