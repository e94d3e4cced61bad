"""`patchq release publish|stats|withdraw`: the commands of a release that go out."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from patchq.cli.complete import release_numbers
from patchq.cli.options import DryRun, Json, Offline, Why

if TYPE_CHECKING:
    from collections.abc import Iterator

    from patchq.forge.writing import Writer
    from patchq.progress import Progress
    from patchq.release.where import Where

Number = Annotated[
    int, typer.Argument(metavar="N", min=1, help="A release.", autocompletion=release_numbers)
]
MaybeNumber = Annotated[
    int | None,
    typer.Argument(metavar="[N]", min=1, help="A release.", autocompletion=release_numbers),
]
Repo = Annotated[
    str | None,
    typer.Option(
        "--repo",
        metavar="OWNER/REPO",
        help="Where (releases/publish.toml, or git's origin at GitHub).",
    ),
]


def publish(number: Number, repo: Repo = None, dry_run: DryRun = False, json: Json = False) -> None:
    """Publish release N at GitHub: a draft, its files, their digests compared, then all at once.

    Safe to repeat, whatever stopped it; nobody sees it before it is whole. The tag must have been
    pushed, and a token that may write stand in GITHUB_TOKEN or GH_TOKEN.

    patchq release publish 5 --dry-run

    patchq release publish 5
    """
    from patchq.carry.workspace import writing
    from patchq.cli.out import give, say
    from patchq.release.publish import publish as go
    from patchq.release.publish import wanted
    from patchq.release.record import mark_published
    from patchq.release.where import where
    from patchq.render import publish as render
    from patchq.render.progress import Bar

    with writing(Path.cwd(), "release publish") as (project, recovered), Bar() as bar:
        say(recovered)
        at = where(project.root, repo)
        with _writer(at, bar) as client:
            bar.step(f"verifying release {number}")
            report = go(
                client,
                wanted(project, number, at.repo),
                dry_run=dry_run,
                before=lambda: mark_published(project, number),
            )
    give(json, lambda: render.published_json(report), lambda: render.published(report))


def stats(number: MaybeNumber = None, repo: Repo = None, json: Json = False) -> None:
    """How often the releases were downloaded; of release N, each of its files.

    patchq release stats

    patchq release stats 5
    """
    from patchq.cli.out import give
    from patchq.config import find_project
    from patchq.forge.client import TOKENS, Client, token
    from patchq.release.stats import stats as count
    from patchq.release.where import where
    from patchq.render import publish as render
    from patchq.render.progress import Bar

    at = where(find_project(Path.cwd()).root, repo)
    value, variable = token() or (None, TOKENS[0])
    with Bar() as bar, Client(at.api, value, variable, progress=bar) as client:
        report = count(client, at.repo, number)
    give(json, lambda: render.counted_json(report), lambda: render.counted(report))


def withdraw(
    number: Number,
    why: Why,
    key: Annotated[
        Path | None,
        typer.Option(
            "--key",
            metavar="FILE",
            help="The ssh key to sign with ($PATCHQ_SIGNING_KEY, git's user.signingkey).",
        ),
    ] = None,
    repo: Repo = None,
    commit: Annotated[
        bool, typer.Option("--commit", help="Commit releases/withdrawn.toml as well.")
    ] = False,
    dry_run: DryRun = False,
    offline: Offline = False,
    json: Json = False,
) -> None:
    """Say, signed, that release N must not be installed, and which one is good.

    The mark stands in releases/withdrawn.toml; at GitHub it stands in the notes, and in a file
    WITHDRAWN where one can be added. Installers refuse the release then. With --offline GitHub is
    told by the next run. Nothing is deleted.

    patchq release withdraw 5 --why "it spins on long prompts"
    """
    from patchq.carry.workspace import writing
    from patchq.cli.out import give, say
    from patchq.release import withdrawing
    from patchq.release.where import where
    from patchq.render import publish as render
    from patchq.render.progress import Bar

    with writing(Path.cwd(), "release withdraw") as (project, recovered), Bar() as bar:
        say(recovered)
        at = None if offline else where(project.root, repo)
        with _maybe(at, bar) as client:
            report = withdrawing.run(
                project,
                number,
                why,
                banner=render.banner,
                key=key,
                client=client,
                repo=at.repo if at else None,
                commit=commit,
                dry_run=dry_run,
            )
    give(json, lambda: render.withdrawn_json(report), lambda: render.withdrawn(report))


@contextmanager
def _writer(at: Where, progress: Progress) -> Iterator[Writer]:
    from patchq.errors import PatchqError
    from patchq.forge.client import TOKENS, token
    from patchq.forge.writing import Writer

    found = token()
    if found is None:
        raise PatchqError(
            f"nothing is changed at {at.repo} without a token",
            f"set {TOKENS[0]} to one that may write the contents of that repository",
        )
    with Writer(at.api, *found, progress=progress) as client:
        yield client


@contextmanager
def _maybe(at: Where | None, progress: Progress) -> Iterator[Writer | None]:
    if at is None:
        yield None
        return
    with _writer(at, progress) as client:
        yield client
