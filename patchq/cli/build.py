"""`patchq build`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchq.cli.complete import targets
from patchq.cli.options import Json, Offline, QueueName


def command(
    target: Annotated[
        str,
        typer.Option(
            "--target",
            metavar="TARGET",
            help="spark, cuda-x86_64 or cpu.",
            autocompletion=targets,
        ),
    ] = "spark",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Where to write it (build/TARGET).")
    ] = None,
    verify: Annotated[
        Path | None,
        typer.Option("--verify", metavar="WHEEL", help="Build it again and compare with this one."),
    ] = None,
    offline: Offline = False,
    queue: QueueName = None,
    json: Json = False,
) -> None:
    """Build the runner: the series' Python laid over upstream's own wheel of the base.

    Takes seconds and no compiler; a series that touches native code is refused. Upstream's wheel
    is verified, and compared with the source file by file. The same inputs give the same bytes.

    patchq build --target spark

    patchq build --target cpu --out dist

    patchq build --target cpu --verify dist/vllm-0.32.0+patchq.0.g1a2b3c4d5e6f.cpu-....whl
    """
    from patchq.build import run
    from patchq.build.overlay import Wanted
    from patchq.build.target import find
    from patchq.carry.inspect import runner_tree
    from patchq.carry.workspace import base_of, read_queue, reading, upstream_of
    from patchq.cli.out import give, say
    from patchq.config import cache_dir
    from patchq.render import builds
    from patchq.render.progress import Bar

    wanted_target = find(target)
    project, recovered = reading(Path.cwd(), "build")
    say(recovered)
    found = read_queue(project, queue)
    folder = out or project.root / "build" / target
    with Bar() as bar, upstream_of(found, offline=offline, progress=bar) as upstream:
        base = base_of(found, upstream)
        tree = runner_tree(found, offline=offline, progress=bar)
        wanted = Wanted(found.config.name, base.name, base.tree, tree)
        store, cache = upstream.store, cache_dir()
        if verify is not None:
            report = run.verify(
                store, wanted, wanted_target, verify, cache, offline=offline, progress=bar
            )
        else:
            patches = found.series.applied
            report = run.build(
                store, wanted, wanted_target, patches, folder, cache, offline=offline, progress=bar
            )
    give(json, lambda: builds.as_json(report), lambda: builds.drawn(report))
    run.proved(report)
