"""`patchq undo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchq.cli.options import DryRun, Json


def command(
    entry: Annotated[
        int | None, typer.Argument(metavar="[ENTRY]", help="A number of `patchq history`.")
    ] = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Take the last change back; once more: the one before it. With a number, that entry.

    An undo is an entry too: to take it back by its number is to redo.

    patchq undo

    patchq undo 7 --dry-run
    """
    from patchq.carry import journal
    from patchq.carry.workspace import writing
    from patchq.cli.out import give, say
    from patchq.release import record
    from patchq.render import jsons
    from patchq.render.console import text

    with writing(Path.cwd(), "undo") as (project, recovered):
        say(recovered)
        say(record.settle(project))
        record.may_undo(project, journal.undo(project, entry, dry_run=True))
        done = journal.undo(project, entry, dry_run=dry_run)
        release = None if dry_run else record.undone(project, done)
    verb = "would be" if dry_run else "is"
    files = ", ".join(change.path for change in done.changes)
    again = "" if dry_run else f" `patchq undo {done.id}` does it again."
    if release is not None:
        again = f" Its tag is removed, commit {release.commit[:12]} says so."
    give(
        json,
        lambda: jsons.undone(done, dry_run=dry_run),
        lambda: text(f"Entry {done.undoes} {verb} taken back ({files}).{again}"),
    )
