"""`patchq support`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchq.cli.options import InstalledCluster, Json


def command(
    cluster: InstalledCluster = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write it there (.tar.gz).")
    ] = None,
    lines: Annotated[
        int, typer.Option("--lines", metavar="N", min=0, max=10000, help="The last N of each log.")
    ] = 400,
    yes: Annotated[bool, typer.Option("--yes", help="Write it without asking.")] = False,
    json: Json = False,
) -> int:
    """Pack what a maintainer needs to help: release, machines, the doctor's findings, logs.

    Names, addresses and tokens are taken out. All of it is shown before anything is written, and
    nothing is sent: attach the file yourself.

    patchq support --out trouble.tar.gz
    """
    import sys

    from patchq.cli.out import give, say
    from patchq.release import installed, support
    from patchq.render import install as render
    from patchq.render.progress import Bar

    with Bar() as bar:
        parcel = support.pack(installed.cluster(cluster), out, lines=lines, progress=bar)
    if not json:
        give(json, lambda: render.parcel_json(parcel, yes), lambda: render.parcel(parcel))
    if not (yes or json) and sys.stdin.isatty():
        yes = typer.confirm(f"write this to {parcel.path}?", err=True)
    if yes:
        support.write(parcel)
    if json:
        give(json, lambda: render.parcel_json(parcel, yes), lambda: render.parcel(parcel))
    else:
        done = f"{parcel.path} is written; attach it to your report"
        say(done if yes else "nothing was written; `--yes` writes it")
    return 0
