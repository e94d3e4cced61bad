"""`patchq lock`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from patchq.cli.complete import targets as known_targets
from patchq.cli.options import Json, Offline, QueueName


def command(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TARGET]...",
            help="With --requirements: which targets (all).",
            autocompletion=known_targets,
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit 5 where the lock is another.")
    ] = False,
    requirements: Annotated[
        bool,
        typer.Option("--requirements", help="Resolve and lock the targets' environments first."),
    ] = False,
    upgrade: Annotated[
        bool, typer.Option("--upgrade", help="With --requirements: take newer releases.")
    ] = False,
    offline: Offline = False,
    queue: QueueName = None,
    json: Json = False,
) -> int:
    """Write upstream/runner.lock, which decides how the runner behaves, and print its digest.

    It binds the runner tree, the components and their patches, the requirements of each target,
    model, drafter, template and serve profiles.

    patchq lock

    patchq lock --requirements spark

    patchq lock --check
    """
    from patchq.build import lockfacts
    from patchq.build.overlay import Wanted
    from patchq.carry.inspect import runner_tree
    from patchq.carry.workspace import read_queue, reading
    from patchq.cli.out import give, say
    from patchq.errors import UsageError
    from patchq.render import lock
    from patchq.render.progress import Bar

    if requirements and (check or offline):
        raise UsageError(
            "--requirements asks the package index and writes",
            "leave --check and --offline out with it",
        )
    if (targets or upgrade) and not requirements:
        raise UsageError("targets and --upgrade belong to --requirements", "add --requirements")
    if not check:
        _write(targets or [], requirements, upgrade, offline, queue, json)
        return 0
    project, recovered = reading(Path.cwd(), "lock")
    say(recovered)
    found = read_queue(project, queue)
    with Bar() as bar:
        tree = runner_tree(found, offline=offline, progress=bar)
    wanted = Wanted(found.config.name, found.state.release, found.state.tree, tree)
    report = lockfacts.report(project.root, wanted, found.series.applied, check=True)
    give(json, lambda: lock.as_json(report), lambda: lock.drawn(report))
    return report.exit_code


def _write(
    targets: list[str],
    requirements: bool,
    upgrade: bool,
    offline: bool,
    queue: str | None,
    json: bool,
) -> None:
    from patchq.build import lockfacts, requirements_lock
    from patchq.build import requirements as locks
    from patchq.build.lock import FILE
    from patchq.build.overlay import Wanted
    from patchq.build.target import TARGETS, find
    from patchq.carry import journal
    from patchq.carry.inspect import runner_tree
    from patchq.carry.workspace import read_queue, writing
    from patchq.cli.out import give, say
    from patchq.config import cache_dir
    from patchq.render import lock
    from patchq.render.progress import Bar

    chosen = [find(each) for each in targets or TARGETS] if requirements else []
    with writing(Path.cwd(), "lock") as (project, recovered), Bar() as bar:
        say(recovered)
        found = read_queue(project, queue)
        tree = runner_tree(found, offline=offline, progress=bar)
        wanted = Wanted(found.config.name, found.state.release, found.state.tree, tree)
        pins = lockfacts.pins_of(project.root, found.series.applied)
        patched = lockfacts.patched(project.root, pins)
        made = [
            requirements_lock.make(
                project.root,
                target,
                wanted.release,
                pins,
                patched,
                cache_dir(),
                upgrade=upgrade,
                progress=bar,
            )
            for target in chosen
        ]
        report = lockfacts.report(
            project.root,
            wanted,
            found.series.applied,
            check=False,
            fresh={each.target: each.data for each in made},
        )
        files = {f"upstream/{locks.file_name(each.target)}": each.data for each in made}
        files[f"upstream/{FILE}"] = report.lock.text
        entry = journal.record(project, "lock", f"runner {report.lock.digest[:12]}", files)
    report = replace(report, entry=entry.id if entry else None)
    give(json, lambda: lock.as_json(report, made), lambda: lock.drawn(report, made))
