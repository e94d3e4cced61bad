"""`patchq cluster deploy|start|stop|status|logs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from patchq.cli.complete import cluster_names, profile_names
from patchq.cli.options import Json

if TYPE_CHECKING:
    from patchq.cluster.config import Cluster, Node
    from patchq.cluster.profile import Profile

ABOUT = """The machines that a runner runs on: bring it there, start, stop, look, read logs.

C is ci/clusters/C.toml (sparks). One at a time works on a cluster; status and logs always do.

patchq cluster deploy sparks

patchq cluster start sparks --profile glm-5.3-flash

patchq cluster logs sparks --grep "WARNING|ERROR"
"""

Name = Annotated[
    str,
    typer.Argument(metavar="[C]", help="The cluster (sparks).", autocompletion=cluster_names),
]
DEFAULT = "sparks"


def deploy(
    cluster: Name = DEFAULT,
    wheel: Annotated[
        Path | None,
        typer.Option("--wheel", metavar="FILE", help="This one, not the last build's."),
    ] = None,
    json: Json = False,
) -> int:
    """Bring the last build to all nodes: environment, wheels, then one link on each.

    Nothing that runs is touched. What was deployed before is kept.

    patchq cluster deploy sparks
    """
    from patchq.build.deployable import bundle
    from patchq.build.target import find
    from patchq.cli.out import give
    from patchq.cluster import config
    from patchq.cluster.deploy import deploy as bring
    from patchq.render import clusters
    from patchq.render.progress import Bar

    root = _root()
    found = config.load(root, _name(root, cluster))
    given = bundle(root, find(found.target), wheel)
    with Bar() as bar:
        report = bring(found, given, progress=bar)
    give(json, lambda: clusters.deployed_json(report), lambda: clusters.deployed(report))
    return 0


def start(
    cluster: Name = DEFAULT,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="P",
            help="ci/profiles/P.toml; left out, the only one.",
            autocompletion=profile_names,
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Start all ranks, and wait until rank 0 serves; a rank that ends is told with its last words.

    A start that fails, or is interrupted, leaves nothing running; exit status 6 then.

    patchq cluster start sparks --profile glm-5.3-flash
    """
    from patchq.cli.out import give
    from patchq.cluster import config
    from patchq.cluster.start import start as begin
    from patchq.render import clusters
    from patchq.render.progress import Bar

    root = _root()
    found = config.load(root, _name(root, cluster))
    chosen, about = _profile(root, found, profile)
    with Bar() as bar:
        report = begin(found, chosen, about, progress=bar)
    give(json, lambda: clusters.started_json(report), lambda: clusters.started(report))
    return report.exit_code


def stop(
    cluster: Name = DEFAULT,
    patience: Annotated[
        float,
        typer.Option(
            "--patience", metavar="S", min=0, max=3600, help="Seconds before it is killed."
        ),
    ] = 30,
    json: Json = False,
) -> int:
    """Stop all ranks, and leave no process, port or shared memory behind.

    Exit status 6 where a node was not reached: what runs there runs on.

    patchq cluster stop sparks
    """
    from patchq.cli.out import give
    from patchq.cluster import config
    from patchq.cluster.ranks import stop as end
    from patchq.render import clusters
    from patchq.render.progress import Bar

    root = _root()
    found = config.load(root, _name(root, cluster))
    with Bar() as bar:
        report = end(found, patience=patience, progress=bar)
    give(json, lambda: clusters.stopped_json(report), lambda: clusters.stopped(report))
    return report.exit_code


def status(cluster: Name = DEFAULT, json: Json = False) -> int:
    """What is installed on each node and what runs, since when, and whether it gets on.

    patchq cluster status sparks
    """
    from patchq.cli.out import give
    from patchq.cluster import config, ranks
    from patchq.render import clusters
    from patchq.render.progress import Bar

    root = _root()
    found = config.load(root, _name(root, cluster))
    with Bar() as bar:
        report = ranks.status(found, progress=bar)
    give(json, lambda: clusters.status_json(report), lambda: clusters.status(report))
    return report.exit_code


def logs(
    cluster: Name = DEFAULT,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Go on as lines come, until Ctrl-C.")
    ] = False,
    grep: Annotated[
        str | None,
        typer.Option("--grep", metavar="RE", help="Lines that match a regular expression."),
    ] = None,
    lines: Annotated[
        int, typer.Option("--lines", metavar="N", min=0, max=10000, help="The last N of each rank.")
    ] = 50,
    run: Annotated[
        str | None,
        typer.Option("--run", metavar="RUN", help="An older run that is kept, or all."),
    ] = None,
    json: Json = False,
) -> int:
    """What the ranks say. The logs of the last ten runs are kept on the nodes.

    patchq cluster logs sparks -f

    patchq cluster logs sparks --run all --grep "FALLBACK"
    """
    from patchq.cli.out import give
    from patchq.cluster import config
    from patchq.cluster import logs as kept
    from patchq.errors import UsageError
    from patchq.render import clusters

    root = _root()
    found = config.load(root, _name(root, cluster))
    if follow and (json or run):
        raise UsageError("--follow is of the present run, and prints lines", "leave the other out")
    if follow:
        kept.follow(found, _heard, pattern=grep, lines=lines)
        return 0
    report = kept.read(found, pattern=grep, lines=lines, run=run)
    raw = "".join(f"{line}\n" for line in clusters.logs_lines(report)).encode("utf-8", "replace")
    give(json, lambda: clusters.logs_json(report), lambda: clusters.logs(report), raw=raw)
    return report.exit_code


def _heard(node: Node, lines: Sequence[str]) -> None:
    import sys

    from patchq.paths import show

    sys.stdout.write("".join(f"{node.name}| {show(line)}\n" for line in lines))
    sys.stdout.flush()


def _root() -> Path:
    from patchq.release import installed

    return installed.root(Path.cwd())


def _name(root: Path, name: str) -> str:
    """The cluster that is meant: where none is named, the only one."""
    from patchq.cluster.config import names

    there = names(root)
    return there[0] if name == DEFAULT and len(there) == 1 else name


def _profile(root: Path, cluster: Cluster, name: str | None) -> tuple[Profile, Mapping[str, str]]:
    """The profile, and what it is: the project's, or that of the release that is installed."""
    from patchq.cluster import profile as profiles
    from patchq.errors import UsageError
    from patchq.release import installed

    if root == installed.home():
        release = installed.current(cluster)
        if name not in (None, release.profile.name):
            raise UsageError(
                f"release {release.number} has the profile {release.profile.name} alone",
                "leave --profile out",
            )
        return release.profile, release.about
    chosen = profiles.choose(root, name)
    return chosen, profiles.identity(root, chosen)


commands = {"deploy": deploy, "start": start, "stop": stop, "status": status, "logs": logs}
