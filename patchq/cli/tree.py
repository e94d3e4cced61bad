"""`patchq tree`."""

from __future__ import annotations

from pathlib import Path

from patchq.cli.options import Json, Offline, QueueName


def command(offline: Offline = False, queue: QueueName = None, json: Json = False) -> None:
    """Print the runner tree: the git hash of base and series together.

    patchq tree
    """
    from patchq.carry.inspect import runner_tree
    from patchq.carry.workspace import read_queue, reading
    from patchq.cli.out import give, say
    from patchq.render import jsons
    from patchq.render.progress import Bar

    project, recovered = reading(Path.cwd(), "tree")
    say(recovered)
    found = read_queue(project, queue)
    with Bar() as bar:
        value = runner_tree(found, offline=offline, progress=bar)
    give(json, lambda: jsons.tree(found.config.name, value), lambda: value)
