"""`patchq install`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchq.cli.options import DryRun, Json, Offline


def command(
    release: Annotated[
        str, typer.Argument(metavar="N|DIR|URL", help="A release: its number, or where it lies.")
    ],
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="DIR|URL",
            help="Where numbers are: a folder, an address, OWNER/REPO at GitHub; as before.",
        ),
    ] = None,
    cluster: Annotated[
        Path | None,
        typer.Option(
            "--cluster", metavar="FILE", help="The machines; as before, or this one alone."
        ),
    ] = None,
    packages: Annotated[
        Path | None,
        typer.Option(
            "--packages", metavar="DIR", help="The Python packages are in this folder, not online."
        ),
    ] = None,
    signers: Annotated[
        Path | None,
        typer.Option(
            "--signers", metavar="FILE", help="Whose releases are taken; install.sh brings it."
        ),
    ] = None,
    offline: Offline = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> int:
    """Install a release: looked at, downloaded, verified, brought to every machine, then switched.

    What runs goes on with what it has. The release before is kept for `patchq rollback`. Run again
    after a failure, it goes on where it was.

    patchq install 5 --from OWNER/REPO --cluster sparks.toml

    patchq install /media/usb/release-5 --packages /media/usb/packages --offline
    """
    from patchq.cli.out import give
    from patchq.errors import UsageError
    from patchq.release.install import Asked, install
    from patchq.render import install as render
    from patchq.render.progress import Bar

    if packages is not None and not packages.is_dir():
        raise UsageError(f"{packages} is no folder", "name the folder that holds the packages")
    whole = packages.absolute() if packages is not None else None
    asked = Asked(release, source, cluster, whole, signers, offline, dry_run)
    with Bar() as bar:
        report = install(asked, progress=bar)
    give(json, lambda: render.installed_json(report), lambda: render.installed(report))
    return 0
