"""`patchq series`."""

from __future__ import annotations

from pathlib import Path

from patchq.cli.options import Json, QueueName


def command(queue: QueueName = None, json: Json = False) -> None:
    """List the patches in order, held ones included.

    With a working tree: `+` is applied, `>` on top, `-` not applied, `!` open with conflicts.

    patchq series
    """
    from patchq.carry.workspace import read_queue, reading
    from patchq.cli.out import give, say
    from patchq.render import jsons, work
    from patchq.work.look import look

    project, recovered = reading(Path.cwd(), "series")
    say(recovered)
    found = read_queue(project, queue)
    seen = look(found)

    def drawing() -> object:
        from patchq.render import tables

        return tables.series(found.series, seen.mark if seen else None)

    give(
        json,
        lambda: {
            **jsons.series(found.config.name, found.series),
            "work": work.look_json(seen),
        },
        drawing,
    )
