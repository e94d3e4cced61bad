"""`patchq bench`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from patchq.cli.complete import cluster_names, profile_names
from patchq.cli.options import Json

if TYPE_CHECKING:
    from patchq.cluster.profile import Profile
    from patchq.config import Project
    from patchq.smoke.bench import Bench
    from patchq.smoke.sides import Asked

ROUNDS, BOUND_ROUNDS, SWEPT_ROUNDS = 3, 8, 15
"""By an address; of a runner that others are held against; of each value that is swept."""
Contexts = Annotated[
    list[int] | None,
    typer.Option(
        "--context", metavar="N", min=16, help="Prompt tokens, about; may be given again."
    ),
]
Concurrency = Annotated[
    list[int] | None,
    typer.Option(
        "--concurrency", metavar="N", min=1, max=256, help="So many at once; may be given again."
    ),
]
Tokens = Annotated[
    int, typer.Option("--tokens", metavar="N", min=2, help="Tokens of every answer.")
]
Warmup = Annotated[
    int, typer.Option("--warmup", metavar="N", min=0, help="Rounds that are not counted.")
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Other texts.")]
Patience = Annotated[
    float,
    typer.Option(
        "--patience", metavar="SECONDS", min=0.1, help="Without a byte for so long: no answer."
    ),
]
ClusterName = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="C",
        help="What runs on ci/clusters/C.toml; kept as evidence.",
        autocompletion=cluster_names,
    ),
]
ProfileName = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="P",
        help="ci/profiles/P.toml: how much context, how much slower at most.",
        autocompletion=profile_names,
    ),
]


def command(
    url: Annotated[
        list[str] | None,
        typer.Option("--url", metavar="URL", help="A server; may be given again."),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="NAME", help="What to call it; one for each --url."),
    ] = None,
    cluster: ClusterName = None,
    profile: ProfileName = None,
    sweep: Annotated[
        str | None,
        typer.Option(
            "--sweep",
            metavar="KEY=N,N",
            help="Start the cluster's runner with each value of draft_tokens in turns.",
        ),
    ] = None,
    starts: Annotated[
        int,
        typer.Option(
            "--starts", metavar="N", min=1, help="With --sweep: over so many A B B A to spread."
        ),
    ] = 3,
    context: Contexts = None,
    concurrency: Concurrency = None,
    tokens: Tokens = 128,
    rounds: Annotated[
        int | None,
        typer.Option(
            "--rounds", metavar="N", min=1, help="How often all is measured, twice (3, 8 or 15)."
        ),
    ] = None,
    warmup: Warmup = 1,
    seed: Seed = 0,
    patience: Patience = 600.0,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Keep what was measured in this file."),
    ] = None,
    json: Json = False,
) -> int:
    """Measure a running server: decode rate, time to first token, and wall time.

    By context length and by requests at once, each prompt cold, then warm; of several servers in
    turns. Text of books. Ctrl-C keeps what was measured. Exit status 6 where something is missing.

    patchq bench --cluster sparks --profile glm-5.3-flash

    patchq bench --sweep draft_tokens=5,7 --cluster sparks --profile glm-5.3-flash

    patchq bench --url http://a:8000 --label five --url http://b:8000 --label seven --rounds 12
    """
    from patchq.cli.evidence import keep
    from patchq.cli.out import give
    from patchq.config import cache_dir
    from patchq.errors import UsageError
    from patchq.render import bench as shown
    from patchq.render.progress import Bar
    from patchq.smoke import kept
    from patchq.smoke.sides import Asked, bench

    if bool(url) == (cluster is not None):
        raise UsageError(
            "bench of which server?",
            "start one, and name it: --cluster sparks, or --url http://localhost:8000",
        )
    if cluster is not None and label:
        raise UsageError("--label is for addresses", "leave it out")
    usual = ROUNDS if url else SWEPT_ROUNDS if sweep else BOUND_ROUNDS
    asked = Asked(
        tuple(context or ()),
        tuple(concurrency or (1, 4)),
        tokens,
        rounds or usual,
        warmup,
        seed,
        patience,
    )
    if sweep is not None:
        if cluster is None:
            raise UsageError("--sweep starts a cluster's runner", "name it with --cluster")
        return _swept(cluster, profile, sweep, asked, starts, out, json)
    if cluster is not None:
        made = on_cluster(cluster, profile, asked)
    else:
        with Bar() as bar:
            made = bench(
                url or (), label or (), asked, held(profile), cache=cache_dir(), progress=bar
            )
    keep("bench", kept.as_json(made), made.runner, out, whole=made.exit_code == 0)
    give(json, lambda: kept.as_json(made), lambda: shown.drawn(made))
    return made.exit_code


def _swept(
    cluster: str,
    profile: str | None,
    sweep: str,
    asked: Asked,
    starts: int,
    out: Path | None,
    json: bool,
) -> int:
    from patchq.cli.out import give, say
    from patchq.cluster import config
    from patchq.cluster.profile import choose
    from patchq.config import cache_dir
    from patchq.gitstore.files import write
    from patchq.render import sweep as shown
    from patchq.render.jsons import dump
    from patchq.render.progress import Bar
    from patchq.smoke import sweep as values

    setting, found = values.asked_for(sweep)
    project = _project()
    there, chosen = config.load(project.root, cluster), choose(project.root, profile)
    with Bar() as bar:
        made = values.sweep(
            project, there, chosen, setting, found, asked, starts, cache=cache_dir(), progress=bar
        )
    kept = out or project.root / "build" / "sweeps" / f"{made.bench.run}.json"
    write(kept, (dump(shown.as_json(made)) + "\n").encode())
    say(f"kept: {kept}")
    give(json, lambda: shown.as_json(made), lambda: shown.drawn(made))
    return made.exit_code


def on_cluster(cluster: str, profile: str | None, asked: Asked) -> Bench:
    """What runs there, measured and bound to what it is."""
    from patchq.cli.evidence import identified
    from patchq.cluster import config
    from patchq.config import cache_dir
    from patchq.render.progress import Bar
    from patchq.smoke.on_cluster import bench

    project = _project()
    found = config.load(project.root, cluster)
    with Bar() as bar:
        return bench(project, found, profile, asked, identified, cache=cache_dir(), progress=bar)


def held(name: str | None) -> Profile | None:
    """The profile of that name, if there is one."""
    if name is None:
        return None
    from patchq.cluster.profile import load

    return load(_project().root, name)


def _project() -> Project:
    from patchq.config import find_project

    return find_project(Path.cwd())
