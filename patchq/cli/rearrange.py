"""What the commands that change the series have in common: lock, work, follow, show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.cli.out import give, say

if TYPE_CHECKING:
    from patchq.carry.arrange import ChangeReport
    from patchq.carry.workspace import Queue
    from patchq.config import Project
    from patchq.progress import Progress


def rearrange(
    command: str,
    queue: str | None,
    json: bool,
    act: Callable[[Queue, Progress], ChangeReport],
) -> int:
    """Run `act` on the queue under the lock and show its report; the exit status."""
    from patchq.carry.workspace import read_queue, writing
    from patchq.render import changes_json
    from patchq.render.progress import Bar

    with writing(Path.cwd(), command) as (project, recovered):
        say(recovered)
        with Bar() as bar:
            report = act(read_queue(project, queue), bar)
            followed = follow_up(project, queue, report.entry, bar)
    say(followed)

    def drawing() -> object:
        from patchq.render import changes

        return changes.changed(report)

    give(json, lambda: changes_json.changed(report), drawing)
    return report.exit_code


def follow_up(
    project: Project, queue: str | None, entry: int | None, progress: Progress
) -> str | None:
    """Bring the working tree, where there is one, to the series as it is recorded now."""
    if entry is None:
        return None
    from patchq.carry.workspace import read_queue, upstream_of
    from patchq.work.follow import follow

    after = read_queue(project, queue)
    with upstream_of(after, progress=progress) as upstream:
        followed = follow(after, upstream.store)
    return followed.says if followed is not None else None
