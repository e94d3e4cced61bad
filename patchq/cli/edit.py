"""`patchq edit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchq.cli.options import DryRun, Json, PatchName, QueueName
from patchq.errors import UsageError


def command(
    name: PatchName,
    subject: Annotated[
        str | None, typer.Option("--subject", metavar="TEXT", help="The new subject.")
    ] = None,
    message: Annotated[
        str | None, typer.Option("--message", metavar="TEXT", help="The new text below it.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set a field; again: one more value."),
    ] = None,
    unset: Annotated[
        list[str] | None, typer.Option("--unset", metavar="KEY", help="Take a field out.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="Take the header from a file.")
    ] = None,
    dry_run: DryRun = False,
    queue: QueueName = None,
    json: Json = False,
) -> int:
    """Change a patch's header: its fields and its text. The diff stays.

    Without options in $VISUAL or $EDITOR. If the editor is killed or leaves no header, nothing is
    changed, and what was typed stays in a file that is named.

    patchq edit series-version

    patchq edit series-version --subject "Say which series this is" --unset Origin

    patchq edit 1 --set Upstream-Status=Submitted
    """
    from patchq.cli.rearrange import rearrange
    from patchq.work import edit

    edits = edit.Edits(subject, message, edit.pairs(set_ or []), tuple(unset or []))
    if file is not None and edits != edit.Edits():
        raise UsageError("--file stands alone", "patchq edit NAME --file FILE")
    if file is None and edits == edit.Edits():
        return _in_editor(name, dry_run, queue, json)
    from patchq.work.editor import read

    wanted = edits if file is None else read(file)
    return rearrange(
        "edit",
        queue,
        json,
        lambda found, bar: edit.edit(found, name, wanted, dry_run=dry_run, progress=bar),
    )


def _in_editor(name: str, dry_run: bool, queue: str | None, json: bool) -> int:
    from patchq.carry.workspace import read_queue, reading
    from patchq.cli.out import say
    from patchq.cli.rearrange import rearrange
    from patchq.work import edit, editor

    project, recovered = reading(Path.cwd(), "edit")
    say(recovered)
    typed = editor.typed(project, read_queue(project, queue).series.find(name))
    with editor.keeping(typed):
        code = rearrange(
            "edit",
            queue,
            json,
            lambda found, bar: edit.edit(
                found,
                typed.patch.name,
                typed.header,
                was=typed.patch,
                dry_run=dry_run,
                progress=bar,
            ),
        )
    if code == 0 and not dry_run:
        editor.discard(typed)
    return code
