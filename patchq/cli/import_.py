"""`patchq import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchq.cli.options import DryRun, Json, QueueName
from patchq.errors import UsageError


def command(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE...|A..B|BRANCH]",
            help="Patch files; with --git, commits, or a branch: what it has beside the base.",
        ),
    ] = None,
    git: Annotated[
        Path | None, typer.Option("--git", metavar="PATH", help="Take commits of this repository.")
    ] = None,
    quilt: Annotated[
        Path | None, typer.Option("--quilt", metavar="DIR", help="Take a quilt folder.")
    ] = None,
    group_by: Annotated[
        str | None,
        typer.Option(
            "--group-by",
            metavar="topic|branch",
            help="One patch for each topic (`[topic] ...`, `topic: ...`), or one for all commits.",
        ),
    ] = None,
    groups: Annotated[
        Path | None,
        typer.Option("--groups", metavar="FILE", help="Which commits become one patch, as TOML."),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="The name of the one patch.")
    ] = None,
    dry_run: DryRun = False,
    queue: QueueName = None,
    json: Json = False,
) -> None:
    """Bring patches in on top of the series, in canonical form.

    Fields that would run something (Patchq-Check, Patchq-Drop-When) are not taken.

    patchq import fix.patch more.mbox

    patchq import --quilt ~/old/patches

    patchq import --git ~/src/demo v1.0..my-fixes

    patchq import --git ~/src/demo my-fixes --group-by topic --dry-run

    Commits come in the order of the branch, merges are taken apart, `fixup!` and `squash!` go into
    their targets; the tree is the branch's. A list for --groups:

    patch = [{name = "loader", commits = ["1f2e3d4", "Load experts"]}]
    """
    given = what or []
    if git is not None and len(given) != 1:
        raise UsageError(
            "--git needs one range of commits, or one branch", "patchq import --git PATH A..B"
        )
    if (group_by or groups) and (git is None or (group_by and groups)):
        raise UsageError(
            "--group-by or --groups goes with --git",
            "patchq import --git PATH A..B --group-by topic",
        )
    if group_by not in (None, "topic", "branch"):
        raise UsageError(f"there is no way to group by {group_by!r}", "say topic or branch")
    if quilt is not None and (given or git is not None):
        raise UsageError("--quilt stands alone", "patchq import --quilt DIR")
    if not given and quilt is None:
        raise UsageError("import what?", "name files, --quilt DIR, or --git PATH A..B")
    from patchq.carry.bring import How, bring
    from patchq.carry.groups import read_list
    from patchq.carry.workspace import read_queue, writing
    from patchq.cli.out import give, say
    from patchq.cli.rearrange import follow_up
    from patchq.render import jsons
    from patchq.render.console import lines, text
    from patchq.render.progress import Bar

    how = How(group_by or "", read_list(groups) if groups else (), name or "")
    with writing(Path.cwd(), "import") as (project, recovered):
        say(recovered)
        with Bar() as bar:
            report = bring(
                read_queue(project, queue),
                files=[Path(name) for name in given] if git is None else (),
                quilt=quilt,
                git=str(git) if git is not None else None,
                commits=given[0] if git is not None else "",
                how=how,
                dry_run=dry_run,
                progress=bar,
            )
            followed = follow_up(project, queue, report.entry, bar)
    say(followed)
    for name, field in report.left_out:
        say(f"{name}: not taken from outside: {field}")
    verb = "would come in" if report.dry_run else "came in"
    told = "\n".join(
        f"{patch.file}  {patch.header.subject}" + (f"  ({', '.join(of)})" if len(of) > 1 else "")
        for patch, of in zip(report.patches, report.commits, strict=True)
    )
    give(
        json,
        lambda: jsons.imported(report),
        lambda: text("").append(lines(f"{told}\n{len(report.patches)} {verb}; {report.tree}")),
    )
