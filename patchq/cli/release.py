"""`patchq release cut|publish|verify|list|show|diff|stats|withdraw`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchq.cli import release_publish
from patchq.cli.complete import release_numbers
from patchq.cli.options import DryRun, Json, Offline, QueueName

ABOUT = """Numbered, signed sets of what was built and tested: cut, publish, verify, look back.

patchq release cut --dry-run

patchq release publish 5

patchq release verify 5

patchq release diff 4 5
"""

Number = Annotated[
    int, typer.Argument(metavar="N", help="A release.", autocompletion=release_numbers)
]


def cut(
    number: Annotated[
        int | None,
        typer.Option("--number", metavar="N", min=1, help="This one, not the next."),
    ] = None,
    why: Annotated[
        str, typer.Option("--why", metavar="TEXT", help="Why numbers are left out; recorded.")
    ] = "",
    key: Annotated[
        Path | None,
        typer.Option(
            "--key",
            metavar="FILE",
            help="The ssh key to sign with ($PATCHQ_SIGNING_KEY, git's user.signingkey).",
        ),
    ] = None,
    dry_run: DryRun = False,
    offline: Offline = False,
    queue: QueueName = None,
    json: Json = False,
) -> int:
    """Make what passed the gate a release: bundle, signature, notes, commit and tag.

    Refused, exit status 5 (6 where only evidence is missing), unless all is committed, nothing is
    held or open, the series is proved, the lock is of these inputs, and the gate has passed for
    these very wheels.

    patchq release cut

    patchq release cut --number 10 --why "9 was announced and never made"
    """
    from patchq.carry.workspace import read_queue, writing
    from patchq.cli.out import give, say
    from patchq.release import cut as cutting
    from patchq.release import record
    from patchq.render import releases, releases_json
    from patchq.render.progress import Bar
    from patchq.render.release_notes import notes

    with writing(Path.cwd(), record.COMMAND) as (project, recovered), Bar() as bar:
        say(recovered)
        say(record.settle(project))
        report = cutting.cut(
            read_queue(project, queue),
            notes,
            number=number,
            why=why,
            key=key,
            dry_run=dry_run,
            offline=offline,
            progress=bar,
        )
    give(json, lambda: releases_json.cut(report), lambda: releases.cut(report))
    return report.exit_code


def verify(
    what: Annotated[
        str,
        typer.Argument(metavar="N|DIR|URL", help="A release.", autocompletion=release_numbers),
    ],
    base: Annotated[
        str | None,
        typer.Option("--from", metavar="DIR|URL", help="Where release N is (build/releases)."),
    ] = None,
    signers: Annotated[
        Path | None,
        typer.Option("--signers", metavar="FILE", help="Known keys (releases/allowed_signers)."),
    ] = None,
    offline: Offline = False,
    json: Json = False,
) -> int:
    """Is it what was signed, and what this repository says? Exit status 5 where it is not.

    Signature, sums and parts; then the build's records, the evidence, and the tagged series, whose
    archive is made anew. Outside of a repository give --signers.

    patchq release verify 5

    patchq release verify https://mirror.example/releases/5 --signers allowed_signers
    """
    from patchq.cli.out import give
    from patchq.config import maybe_project
    from patchq.release.verify import placed
    from patchq.release.verify import verify as look
    from patchq.render import releases, releases_json
    from patchq.render.progress import Bar

    project = maybe_project(Path.cwd())
    with (
        Bar() as bar,
        placed(what, base, project, signers, offline=offline, progress=bar) as place,
    ):
        bar.step("verifying")
        report = look(what, place, project, signers)
    give(json, lambda: releases_json.verified(report), lambda: releases.verified(report))
    return report.exit_code


def list_(json: Json = False) -> None:
    """The releases of this repository, the newest first.

    patchq release list
    """
    from patchq.cli.out import give
    from patchq.release import history
    from patchq.render import releases, releases_json

    found = history.listed(_root())
    give(json, lambda: releases_json.listed(found), lambda: releases.listed(found))


def show(number: Number, json: Json = False) -> None:
    """The notes of a release, and its files.

    patchq release show 5
    """
    from patchq.cli.out import give
    from patchq.release import history, manifest
    from patchq.render import releases, releases_json
    from patchq.render.release_notes import notes

    root = _root()
    found = history.one(root, number)
    last = found.manifest.previous
    before = manifest.read_at(root, last) if last is not None else None
    text = notes(found.manifest, before)
    drawing = releases.shown(found, text)
    give(json, lambda: releases_json.shown(found), lambda: drawing, raw=drawing.plain.encode())


def diff(a: Number, b: Number, json: Json = False) -> None:
    """What release B has otherwise than A: patches, base, dependencies, benchmarks.

    patchq release diff 4 5
    """
    from patchq.cli.out import give
    from patchq.release import history
    from patchq.render import releases, releases_json

    found = history.diff(_root(), a, b)
    give(json, lambda: releases_json.compared(found), lambda: releases.compared(found))


def _root() -> Path:
    from patchq.carry.workspace import reading
    from patchq.cli.out import say

    project, recovered = reading(Path.cwd(), "release")
    say(recovered)
    return project.root


commands = {
    "cut": cut,
    "publish": release_publish.publish,
    "verify": verify,
    "list": list_,
    "show": show,
    "diff": diff,
    "stats": release_publish.stats,
    "withdraw": release_publish.withdraw,
}
