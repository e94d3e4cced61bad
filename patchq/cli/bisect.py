"""`patchq bisect`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from patchq.cli.complete import cluster_names, profile_names, targets
from patchq.cli.options import DryRun, Json, Offline, QueueName

if TYPE_CHECKING:
    from patchq.bisect.begin import Opened
    from patchq.bisect.model import Move
    from patchq.bisect.session import Asked
    from patchq.config import Project

MOST = 64
"""Steps at the same time."""


def command(
    run: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="CMD",
            help="Shows the fault: status 0 good, 1 to 127 bad, 125 cannot say. No shell.",
        ),
    ] = None,
    between: Annotated[
        tuple[str, str],
        typer.Option(
            "--between",
            metavar="A B",
            help="Without and with the fault: releases, digests, revisions, or . (last release, .)",
        ),
    ] = ("last release", "."),
    repeat: Annotated[
        int,
        typer.Option(
            "--repeat", metavar="N", min=1, max=1000, help="It shows in some runs only: up to N."
        ),
    ] = 1,
    sure: Annotated[
        float, typer.Option("--sure", metavar="P", min=0.6, max=0.999999, help="How sure to be.")
    ] = 0.99,
    false_alarms: Annotated[
        float,
        typer.Option(
            "--false-alarms", metavar="P", min=0, max=0.3, help="Share of good runs that look bad."
        ),
    ] = 0.0,
    skip_code: Annotated[
        list[int] | None,
        typer.Option(
            "--skip-code", metavar="CODE", min=1, max=127, help="Cannot say (125). May be repeated."
        ),
    ] = None,
    minutes: Annotated[
        float,
        typer.Option("--minutes", metavar="M", min=0.001, help="A run that takes longer is ended."),
    ] = 60.0,
    hang_is_bad: Annotated[
        bool, typer.Option("--hang-is-bad", help="A run that was ended shows the fault.")
    ] = False,
    known: Annotated[
        bool, typer.Option("--known", help="A and B are known to be so: do not run them.")
    ] = False,
    minimal: Annotated[
        bool, typer.Option("--minimal", help="Say what the culprit needs to show the fault, too.")
    ] = False,
    source: Annotated[
        bool, typer.Option("--source", help="Check the patched source out: $PATCHQ_SOURCE.")
    ] = False,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            metavar="C",
            help="Build each for ci/clusters/C.toml, deploy and start it: $PATCHQ_URL.",
            autocompletion=cluster_names,
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="P",
            help="With --cluster: ci/profiles/P.toml.",
            autocompletion=profile_names,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target", metavar="T", help="Build each: $PATCHQ_BUILD.", autocompletion=targets
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option("--state", metavar="DIR", help="Where it is kept (.git/patchq/bisect/...)."),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Begin anew.")] = False,
    next_: Annotated[
        int | None,
        typer.Option(
            "--next", metavar="N", min=1, max=MOST, help="Name up to N steps to do at once."
        ),
    ] = None,
    try_: Annotated[
        str | None,
        typer.Option("--try", metavar="STEP", help="Do this step here, and write DIR/STEP.json."),
    ] = None,
    take: Annotated[
        list[Path] | None,
        typer.Option("--take", metavar="FILE", help="Bring in STEP.json. May be repeated."),
    ] = None,
    dry_run: DryRun = False,
    offline: Offline = False,
    queue: QueueName = None,
    json: Json = False,
) -> int:
    """Find what brought a fault, of all that moved between two runners.

    Patches, base, upstream's commits, components, template, profile: subsets of them are made that
    go together, and CMD runs for each. What cannot be built is skipped, not blamed. One that was
    interrupted goes on where it was. Exit status 4 where it cannot tell; the suspects are named.

    patchq bisect --run "pytest -q tests/test_loader.py"

    patchq bisect --between 3 . --run "patchq smoke --url $PATCHQ_URL --only spin" --cluster sparks
    --repeat 20

    patchq bisect --next 2; patchq bisect --try 1f0c3a5b7d9e; patchq bisect --take 1f0c3a5b7d9e.json
    """
    from patchq.bisect import begin
    from patchq.bisect.session import Asked
    from patchq.config import find_project
    from patchq.errors import UsageError
    from patchq.render.progress import Bar

    if sum((dry_run, next_ is not None, try_ is not None, bool(take))) > 1:
        raise UsageError("--dry-run, --next, --try and --take are one each", "give one of them")
    if false_alarms and repeat == 1:
        raise UsageError("--false-alarms needs more runs than one", "give --repeat, too")
    if profile is not None and cluster is None:
        raise UsageError("--profile is for what is started", "give --cluster, too")
    project = find_project(Path.cwd())
    if run is None:
        if again or dry_run:
            raise UsageError("what shows the fault?", "give --run")
        return _there(project, state, next_, try_, take, offline, json)
    asked = Asked(
        run,
        *between,
        queue=queue,
        repeat=repeat,
        sure=sure,
        false_alarms=false_alarms,
        skip_codes=tuple(skip_code or (125,)),
        minutes=minutes,
        hang_is_bad=hang_is_bad,
        known=known,
        minimal=minimal,
        source=source,
        cluster=cluster,
        profile=profile,
        target=target,
    )
    with Bar() as bar:
        asked, found = begin.asked_now(project, asked, offline, bar)
    if dry_run:
        return _moves(asked, found.moves, (found.a.label, found.b.label), json)
    with begin.fresh(project, asked, found, state, again=again) as opened:
        return _go(project, opened, next_, try_, take, json)


def _there(
    project: Project,
    state: Path | None,
    next_: int | None,
    try_: str | None,
    take: list[Path] | None,
    offline: bool,
    json: bool,
) -> int:
    """Go on with the bisection that is there. `--try` only reads it: others may be at work."""
    from contextlib import nullcontext

    from patchq.bisect import begin
    from patchq.bisect.session import held
    from patchq.render.progress import Bar

    folder = begin.there(project, state).folder
    with held(folder) if try_ is None else nullcontext():
        opened = begin.there(project, folder)
        if next_ is None and not take:
            with Bar() as bar:
                opened = begin.with_moves(project, opened, offline, bar)
        return _go(project, opened, next_, try_, take, json)


def _go(
    project: Project,
    opened: Opened,
    next_: int | None,
    try_: str | None,
    take: list[Path] | None,
    json: bool,
) -> int:
    from patchq.bisect import run as runs
    from patchq.cli.out import give
    from patchq.render import bisect
    from patchq.render.progress import Bar

    folder, session = opened.folder, opened.session
    if try_ is not None:
        with Bar() as bar:
            path, result = runs.try_one(folder, session, try_, opened.bench(project), bar)
        give(
            json,
            lambda: bisect.step_json(result, str(path)),
            lambda: bisect.step_drawn(result, str(path)),
        )
        return 0
    if take:
        report = runs.look(folder, runs.take(folder, session, take))
    elif next_ is not None:
        report = runs.name_steps(folder, session, next_)
    else:
        with Bar() as bar:
            report = runs.search(folder, session, opened.bench(project), bar)
    give(json, lambda: bisect.as_json(report), lambda: bisect.drawn(report))
    return report.exit_code


def _moves(asked: Asked, moves: tuple[Move, ...], labels: tuple[str, str], json: bool) -> int:
    from patchq.bisect.session import Session
    from patchq.cli.out import give
    from patchq.render import bisect

    found = Session(asked, moves, labels=labels)
    give(json, lambda: bisect.moves_json(found), lambda: bisect.moves_drawn(found))
    return 0
