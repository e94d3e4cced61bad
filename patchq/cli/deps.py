"""`patchq deps list|check|outdated|update`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchq.cli.complete import part_names
from patchq.cli.options import DryRun, Json, Offline, QueueName
from patchq.errors import UsageError

ABOUT = """What the runner is made of beside upstream: components, model, draft, template.

patchq deps list

patchq deps check

patchq deps update flashinfer 0.7.2.post1 --dry-run
"""

Part = Annotated[str, typer.Argument(metavar="NAME", help="A part.", autocompletion=part_names)]
Version = Annotated[
    str, typer.Argument(metavar="VERSION", help="A release, or a revision; latest: the newest.")
]
Look = Annotated[
    bool,
    typer.Option("--look", help="Bring the newest releases, and look up what our files use."),
]
Anyway = Annotated[bool, typer.Option("--anyway", help="Set aside what contradicts; needs --why.")]
Because = Annotated[str, typer.Option("--why", metavar="TEXT", help="Why; it is recorded.")]
Sha256 = Annotated[
    str, typer.Option("--sha256", metavar="HEX", help="Of a model, draft or template.")
]


def list_(queue: QueueName = None, json: Json = False) -> None:
    """Every component, model, draft and template: its pin, its patches, and why it is here.

    patchq deps list --json
    """
    from patchq.carry.deps.book import open_book
    from patchq.carry.deps.read import listed
    from patchq.carry.workspace import reading
    from patchq.cli.out import say

    project, recovered = reading(Path.cwd(), "deps list")
    say(recovered)
    _give(json, "listed", listed(open_book(project, queue)))


def check(offline: Offline = False, queue: QueueName = None, json: Json = False) -> int:
    """Whether all of it fits at once: this model, this upstream, this hardware.

    Exit status 5 where it does not, 6 where something was not learned.

    patchq deps check
    """
    from patchq.carry.deps.book import open_book
    from patchq.carry.deps.read import check as look
    from patchq.carry.workspace import reading
    from patchq.cli.out import say
    from patchq.render.progress import Bar

    project, recovered = reading(Path.cwd(), "deps check")
    say(recovered)
    with Bar() as bar:
        report = look(open_book(project, queue), offline=offline, progress=bar)

    _give(json, "checked", report)
    return report.exit_code


def outdated(
    look: Look = False, offline: Offline = False, queue: QueueName = None, json: Json = False
) -> int:
    """What is newer, what it would bring or break, and which patches may go.

    Exit status 6 where a source was not reached; the rest is shown.

    patchq deps outdated
    """
    from patchq.carry.deps.book import open_book
    from patchq.carry.deps.outdated import outdated as ask
    from patchq.carry.workspace import reading
    from patchq.cli.out import say
    from patchq.render.progress import Bar

    project, recovered = reading(Path.cwd(), "deps outdated")
    say(recovered)
    with Bar() as bar:
        report = ask(open_book(project, queue), look=look, offline=offline, progress=bar)

    _give(json, "outdated", report)
    return report.exit_code


def update(
    name: Part,
    version: Version,
    anyway: Anyway = False,
    why: Because = "",
    sha256: Sha256 = "",
    dry_run: DryRun = False,
    offline: Offline = False,
    queue: QueueName = None,
    json: Json = False,
) -> int:
    """Move a part to another version, the way that a sync goes: judge, carry, prove, record.

    Patches of its own (the queue of its name) are carried onto it. Nothing is written where it
    contradicts what others ask for, or a patch asks (exit status 4), or a proof fails (5).

    patchq deps update b12x 1.5.1

    patchq deps update flashinfer 0.7.2.post1 --anyway --why "measured faster on GB10"

    patchq deps update glm-5.3-flash-chat main
    """
    if anyway and not why.strip():
        raise UsageError("--anyway needs a reason", "add --why TEXT")
    if why and not anyway:
        raise UsageError("--why goes with --anyway", "leave it out, or add --anyway")
    from patchq.carry.deps.book import open_book
    from patchq.carry.deps.update import Wanted
    from patchq.carry.deps.update import update as move
    from patchq.carry.workspace import writing
    from patchq.cli.out import say
    from patchq.render.progress import Bar

    wanted = Wanted(name, version, why.strip(), sha256, dry_run, offline)
    with writing(Path.cwd(), "deps update") as (project, recovered):
        say(recovered)
        with Bar() as bar:
            report = move(open_book(project, queue), wanted, bar)

    _give(json, "updated", report)
    return report.exit_code


def _give(json: bool, what: str, report: object) -> None:
    from patchq.cli.out import give_by

    give_by(json, "deps_json", "deps", what, report)


commands = {"list": list_, "check": check, "outdated": outdated, "update": update}
