"""`patchq status`."""

from __future__ import annotations

from pathlib import Path

from patchq.cli.options import Json, QueueName


def command(queue: QueueName = None, json: Json = False) -> None:
    """Where the queue stands, without asking anybody outside.

    patchq status
    """
    from patchq.carry.inspect import status
    from patchq.carry.session import glance
    from patchq.carry.workspace import read_queue, reading
    from patchq.cli.out import give, say
    from patchq.render import jsons, sessions, sessions_json, work
    from patchq.work.look import look

    project, recovered = reading(Path.cwd(), "status")
    say(recovered)
    found = read_queue(project, queue)
    report, seen = status(found, recovered), look(found, edits=True)
    session = glance(found.project, found.config.name)

    def drawing() -> object:
        from patchq.render import tables

        return tables.status(report, [*sessions.rows(session), *work.look_rows(seen)])

    def value() -> dict[str, object]:
        more = {"session": sessions_json.glance(session), "work": work.look_json(seen)}
        return {**jsons.status(report), **more}

    give(json, value, drawing)
