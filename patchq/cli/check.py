"""`patchq check`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from patchq.cli.options import Json, Offline, QueueName


def command(
    quilt: Annotated[bool, typer.Option("--quilt", help="Apply it by quilt as well.")] = False,
    confirm: Annotated[
        bool,
        typer.Option("--confirm", help="Let the checks that the patches bring run here."),
    ] = False,
    renumber: Annotated[
        bool,
        typer.Option(
            "--renumber", help="Where two have one number, give the later one a new number first."
        ),
    ] = False,
    offline: Offline = False,
    queue: QueueName = None,
    json: Json = False,
) -> int:
    """Prove the series on its base: git applies it, what it changed compiles, its checks pass.

    Exit status 5 where it does not hold.

    patchq check --quilt

    patchq check --renumber
    """
    from patchq.carry.checks import confirm as confirm_checks
    from patchq.carry.inspect import check
    from patchq.carry.workspace import read_queue, reading
    from patchq.cli.out import give, say
    from patchq.errors import ProofFailed
    from patchq.render import jsons
    from patchq.render.progress import Bar

    renumbered = _renumber(queue) if renumber else ()
    project, recovered = reading(Path.cwd(), "check")
    say(recovered)
    found = read_queue(project, queue)
    if confirm:
        for name, line in confirm_checks(project, found.series.applied):
            say(f"{name}: may run here: {line}")
    with Bar() as bar:
        report = check(found, quilt=quilt, offline=offline, progress=bar)
    report = replace(report, renumbered=renumbered)

    def drawing() -> object:
        from patchq.render import tables

        return tables.check(report)

    give(json, lambda: jsons.check(report), drawing)
    return 0 if report.proof.ok else ProofFailed.exit_code


def _renumber(queue: str | None) -> tuple[tuple[str, str], ...]:
    from patchq.carry.workspace import read_queue, writing
    from patchq.cli.out import say
    from patchq.cli.rearrange import follow_up
    from patchq.errors import ProofFailed
    from patchq.render.progress import Bar
    from patchq.work.edit import renumber

    with writing(Path.cwd(), "check") as (project, recovered):
        say(recovered)
        with Bar() as bar:
            report, pairs = renumber(read_queue(project, queue), progress=bar)
            if report is not None and not report.proof.ok:
                why = "; ".join(check.detail for check in report.proof.checks if not check.ok)
                raise ProofFailed(f"the series does not hold: {why}", "nothing was renumbered")
            followed = follow_up(project, queue, report.entry if report else None, bar)
    for old, new in pairs:
        say(f"{old} is {new} now")
    say(followed)
    return pairs
