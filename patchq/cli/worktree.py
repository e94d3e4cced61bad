"""What the commands on the working tree share: lock, queue, progress, report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from patchq.carry.workspace import Queue
    from patchq.progress import Progress
    from patchq.work.report import WorkReport

Everything = Annotated[bool, typer.Option("-a", "--all", help="All patches.")]
Paths = Annotated[
    list[str] | None,
    typer.Argument(metavar="[PATH]...", help="Only edits at or below these paths."),
]


def at_work(
    command: str, queue: str | None, json: bool, act: Callable[[Queue, Progress], WorkReport]
) -> int:
    """Run `act` on the queue under the lock and show its report; the exit status."""
    from patchq.carry.workspace import read_queue, writing
    from patchq.cli.out import give, say
    from patchq.render import work
    from patchq.render.progress import Bar

    with writing(Path.cwd(), command) as (project, recovered):
        say(recovered)
        with Bar() as bar:
            report = act(read_queue(project, queue), bar)
    give(json, lambda: work.moved_json(report), lambda: work.moved(report))
    return report.exit_code
