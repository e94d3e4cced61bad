"""`patchq diff`."""

from __future__ import annotations

from pathlib import Path

from patchq.cli.options import Json, QueueName
from patchq.cli.worktree import Paths


def command(paths: Paths = None, queue: QueueName = None, json: Json = False) -> None:
    """Show the edits of the working tree that no patch has yet, new files included.

    A pipe gets it byte for byte.

    patchq diff

    patchq diff vllm/config > wip.patch
    """
    from patchq.carry.workspace import read_queue, reading
    from patchq.cli.out import give, say
    from patchq.render import work
    from patchq.work.look import paths_in, unrefreshed

    project, recovered = reading(Path.cwd(), "diff")
    say(recovered)
    found = read_queue(project, queue)
    report = unrefreshed(found, paths_in(found, Path.cwd(), paths or []))
    give(json, lambda: work.diff_json(report), lambda: work.diff(report), raw=report.diff)
