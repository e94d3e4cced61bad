"""`patchq nightly`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from patchq.cli.complete import cluster_names, profile_names, targets
from patchq.cli.options import DryRun, Json, QueueName

if TYPE_CHECKING:
    from patchq.nightly.model import Fault, Night, Told
    from patchq.nightly.run import Asked
    from patchq.nightly.settings import Settings
    from patchq.progress import Progress


def command(
    onto: Annotated[
        str | None,
        typer.Option(
            "--onto", metavar="RELEASE", help="latest, main (upstream's), a version or a tag."
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster", metavar="C", help="Where it is tried.", autocompletion=cluster_names
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile", metavar="P", help="What it serves there.", autocompletion=profile_names
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="TARGET", help="What is built.", autocompletion=targets),
    ] = None,
    nights: Annotated[
        Path | None, typer.Option("--nights", metavar="DIR", help="Where nights are kept.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="REV", help="Begin with this commit, not the remote's branch."
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="STAGE", help="The last stage: sync, build, ..., gate."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Run everything although nothing is new.")
    ] = False,
    no_tell: Annotated[
        bool, typer.Option("--no-tell", help="Tell nobody: neither issue nor pull request.")
    ] = False,
    tell: Annotated[
        Path | None,
        typer.Option(
            "--tell", metavar="DIR", help="Tell of a night that ran elsewhere; DIR: its folder."
        ),
    ] = None,
    alarm: Annotated[
        bool, typer.Option("--alarm", help="Only see whether the last night is too old.")
    ] = False,
    dry_run: DryRun = False,
    queue: QueueName = None,
    json: Json = False,
) -> int:
    """Sync, build, deploy, smoke, bench and gate unattended, and tell people what came of it.

    The settings are ci/nightly.toml; options go before them. A night that was cut short goes on.
    Exit status 0 green or nothing new, 4 a decision is needed, 5 something is wrong, 6 something
    was not reached.

    patchq nightly

    patchq nightly --onto main --until smoke --no-tell

    patchq nightly --tell nights/2026-12-01

    patchq nightly --alarm
    """
    from dataclasses import replace

    from patchq.config import find_project
    from patchq.errors import UsageError
    from patchq.nightly import settings as files
    from patchq.nightly.run import Asked

    if (tell is not None) + alarm + dry_run > 1 or (no_tell and (alarm or tell is not None)):
        raise UsageError(
            "--tell, --alarm, --dry-run and --no-tell do not go together", "give one of them"
        )
    root = find_project(Path.cwd()).root
    settings = files.load(root)
    settings = replace(
        settings,
        onto=onto or settings.onto,
        cluster=cluster or settings.cluster,
        profile=profile or settings.profile,
        target=target or settings.target,
        nights=str(nights.absolute()) if nights else settings.nights,
    )
    if alarm:
        return _alarm(root, settings, queue, json)
    if tell is not None:
        return _tell(root, settings, tell, json)
    asked = Asked(queue, start, again, until)
    if dry_run:
        return _plan(root, settings, asked, json)
    return _night(root, settings, asked, not no_tell, json)


def _night(root: Path, settings: Settings, asked: Asked, telling: bool, json: bool) -> int:
    from patchq.cli.out import give
    from patchq.nightly import run
    from patchq.render import nightly
    from patchq.render.progress import Bar

    with Bar() as bar:
        hands = run.Hands(
            find=lambda night, folder: _found(root, settings, night, folder),
            tell=(lambda night, folder, earlier: _told(root, settings, night, folder, earlier, bar))
            if telling
            else None,
        )
        ran = run.night(root, settings, asked, hands, bar)
    give(json, lambda: nightly.as_json(ran), lambda: nightly.drawn(ran))
    return ran.exit_code


def _found(root: Path, settings: Settings, night: Night, folder: Path) -> Fault | None:
    from patchq.config import find_project, load_queue
    from patchq.nightly.fault import find

    github = load_queue(find_project(root), night.queue).github
    return find(night, folder, github=github, target=settings.target)


def _told(
    root: Path,
    settings: Settings,
    night: Night,
    folder: Path,
    earlier: tuple[Night, ...],
    progress: Progress,
) -> Told:
    from patchq.nightly.tell import tell
    from patchq.render.night_words import WORDS

    return tell(root, settings, night, folder, earlier, WORDS, progress)


def _plan(root: Path, settings: Settings, asked: Asked, json: bool) -> int:
    from patchq.cli.out import give
    from patchq.nightly.run import plan
    from patchq.render import nightly

    made = plan(root, settings, asked)
    give(json, lambda: nightly.plan_json(made), lambda: nightly.planned(made))
    return 0


def _tell(root: Path, settings: Settings, folder: Path, json: bool) -> int:
    from patchq.cli.out import give
    from patchq.nightly import elsewhere, kept
    from patchq.render import nightly
    from patchq.render.progress import Bar

    with Bar() as bar:
        bar.step("looking at the night")
        night = elsewhere.night(root, settings, folder)
        earlier = kept.listed(settings.folder(root), night.queue)
        done = _told(root, settings, night, folder, earlier, bar)
    give(json, lambda: nightly.told_json(night, done), lambda: nightly.told(night, done))
    return elsewhere.exit_code(done)


def _alarm(root: Path, settings: Settings, queue: str | None, json: bool) -> int:
    from datetime import UTC, datetime

    from patchq.cli.out import give
    from patchq.config import find_project, load_queue
    from patchq.nightly.alarm import alarm
    from patchq.render import nightly
    from patchq.render.night_words import WORDS
    from patchq.render.progress import Bar

    name = load_queue(find_project(root), queue).name
    with Bar() as bar:
        found = alarm(root, settings, datetime.now(UTC), WORDS, bar, queue=name)
    give(json, lambda: nightly.alarm_json(name, found), lambda: nightly.alarmed(name, found))
    return 0
