"""`patchq check`."""

from __future__ import annotations

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
    offline: Offline = False,
    queue: QueueName = None,
    json: Json = False,
) -> int:
    """Prove the series on its base: git applies it, what it changed compiles, its checks pass.

    Exit status 5 where it does not hold.

    patchq check --quilt
    """
    from patchq.carry.checks import confirm as confirm_checks
    from patchq.carry.inspect import check
    from patchq.carry.workspace import read_queue, reading
    from patchq.cli.out import give, say
    from patchq.errors import ProofFailed
    from patchq.render import jsons
    from patchq.render.progress import Bar

    project, recovered = reading(Path.cwd(), "check")
    say(recovered)
    found = read_queue(project, queue)
    if confirm:
        for name, line in confirm_checks(project, found.series.applied):
            say(f"{name}: may run here: {line}")
    with Bar() as bar:
        report = check(found, quilt=quilt, offline=offline, progress=bar)

    def drawing() -> object:
        from patchq.render import tables

        return tables.check(report)

    give(json, lambda: jsons.check(report), drawing)
    return 0 if report.proof.ok else ProofFailed.exit_code
