"""`patchq build`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchq.cli.complete import cluster_names, targets
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
        typer.Option("--verify", metavar="WHEEL", help="Build it again and compare all with it."),
    ] = None,
    image: Annotated[
        bool, typer.Option("--image", help="A container image of it, too (docker or podman).")
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what native code is compiled anew, and why.")
    ] = False,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            metavar="C",
            help="Compile native code on the first node of ci/clusters/C.toml (this machine).",
            autocompletion=cluster_names,
        ),
    ] = None,
    offline: Offline = False,
    queue: QueueName = None,
    json: Json = False,
) -> int:
    """Build the runner: the series' Python laid over upstream's own wheel of the base.

    Takes seconds and no compiler, unless the series touches native code: that is planned (--plan)
    and compiled on a node. Upstream's wheel is verified, and compared with the source file by file;
    components with patches of their own are built the same way. Same inputs, same bytes.

    patchq build --target spark

    patchq build --target cpu --out dist

    patchq build --target spark --plan

    patchq build --target spark --image

    patchq build --target cpu --verify dist/vllm-0.32.0+patchq.0.g1a2b3c4d5e6f.cpu-....whl
    """
    from dataclasses import replace
    from functools import partial

    from patchq.build import image as images
    from patchq.build import run
    from patchq.build.given import gather
    from patchq.build.native.build import compile_all, node_of, planned
    from patchq.build.overlay import Wanted
    from patchq.build.target import find
    from patchq.carry.inspect import made_tree
    from patchq.carry.patched import patched
    from patchq.carry.workspace import base_of, read_queue, reading, upstream_of
    from patchq.cli.out import give, say
    from patchq.cluster import config as clusters
    from patchq.config import cache_dir
    from patchq.errors import UsageError
    from patchq.render import builds
    from patchq.render import native as plans
    from patchq.render.progress import Bar

    wanted_target = find(target)
    if plan and (image or verify is not None):
        raise UsageError("--plan builds nothing", "give it without --image and --verify")
    if image:
        images.asked_for(target, verify=verify is not None)
    project, recovered = reading(Path.cwd(), "build")
    say(recovered)
    if cluster is not None:
        clusters.load(project.root, cluster)  # a name that is none shows before the work
    found = read_queue(project, queue)
    folder = out or project.root / "build" / target
    with Bar() as bar, upstream_of(found, offline=offline, progress=bar) as upstream:
        base = base_of(found, upstream)
        tree = made_tree(found, upstream.store, base, bar)
        wanted = Wanted(found.config.name, base.name, base.tree, tree)
        store, cache, patches = upstream.store, cache_dir(), found.series.applied
        grow = partial(patched, project.root, cache=cache, offline=offline, progress=bar)
        native = planned(store, wanted, wanted_target)
        if plan:
            give(json, lambda: plans.as_json(native), lambda: plans.drawn(native))
            return 5 if native.findings else 0
        given = gather(project.root, wanted, wanted_target, patches, grow)
        if native.changed:
            logs = cache / "logs" / f"native-{tree[:12]}"
            with node_of(project.root, cluster, cache) as (shell, where):
                machine, todo = wanted_target.machine, (store, wanted, native)
                libraries = compile_all(
                    shell, *todo, machine, where, logs, offline=offline, progress=bar
                )
            given = replace(given, compiled=libraries)
        action = run.build if verify is None else run.verify
        report = action(
            store,
            wanted,
            wanted_target,
            patches,
            folder if verify is None else verify,
            cache,
            given=given,
            offline=offline,
            progress=bar,
        )
        made = images.image(project.root, report, folder, cache / "logs", bar) if image else None
    give(json, lambda: builds.as_json(report, made), lambda: builds.drawn(report, made))
    return report.exit_code
