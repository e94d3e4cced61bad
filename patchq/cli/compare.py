"""`patchq compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from patchq.cli.bench import (
    ClusterName,
    Concurrency,
    Contexts,
    Patience,
    ProfileName,
    Seed,
    Tokens,
    Warmup,
    held,
    on_cluster,
)
from patchq.cli.options import Json

if TYPE_CHECKING:
    from patchq.cluster.profile import Profile
    from patchq.smoke.bench import Bench
    from patchq.smoke.sides import Asked

    Sides = tuple[list[tuple[Bench, int]], list[Bench]]


def command(
    a: Annotated[str, typer.Argument(metavar="A", help="An address, or FILE or FILE#LABEL.")],
    b: Annotated[
        str | None, typer.Argument(metavar="[B]", help="What is held against A, or --cluster.")
    ] = None,
    cluster: ClusterName = None,
    profile: ProfileName = None,
    context: Contexts = None,
    concurrency: Concurrency = None,
    tokens: Tokens = 128,
    rounds: Annotated[
        int, typer.Option("--rounds", metavar="N", min=1, help="Of A, B, B, A.")
    ] = 32,
    warmup: Warmup = 1,
    seed: Seed = 0,
    patience: Patience = 600.0,
    measured: Annotated[
        Path | None,
        typer.Option(
            "--measured", metavar="FILE", help="Keep what was measured for it, as bench --out does."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Keep the comparison in this file.")
    ] = None,
    json: Json = False,
) -> int:
    """Say whether B is better than A, worse, or the same.

    Two addresses are measured in turns, A B B A; a saved bench is taken as it is, and an address or
    a cluster beside it measured as it was. Where B is a runner's, the comparison is kept as its
    evidence. Exit status 5 where B is worse, 6 where it cannot be said.

    patchq compare http://old:8000 http://new:8000 --context 1024 --context 8192

    patchq compare release-3.json --cluster sparks --profile glm-5.3-flash

    patchq compare both.json#five both.json#seven
    """
    from patchq.cli.evidence import keep
    from patchq.cli.out import give, say
    from patchq.errors import UsageError
    from patchq.render import bench as shown
    from patchq.smoke import kept
    from patchq.smoke.compare import compare
    from patchq.smoke.sides import Asked, margins_of

    if (b is None) == (cluster is None):
        raise UsageError("which is B?", "name an address or a file, or --cluster")
    sizes = tuple(context or (1024, 8192)), tuple(concurrency or (1, 4))
    asked = Asked(*sizes, tokens, rounds, warmup, seed, patience)
    found = held(profile)
    margins = margins_of(found)
    (left, right), made = _sides(a, b, cluster, profile, asked, found)
    if found is None and right[0].runner is not None:
        margins = margins_of(held(right[0].runner.profile))
    for each in made:
        if measured is not None or each.runner is not None:
            whole = each.exit_code == 0
            keep("bench", kept.as_json(each), each.runner, measured, whole=whole)
        say(each.stopped and f"not all was measured: {each.stopped}")
    if any(each.interrupted for each in made):
        return 130
    result = compare(left, right, margins)
    value = shown.comparison_json(result)
    keep("compare", value, result.runner, out, whole=result.whole)
    give(json, lambda: value, lambda: shown.compared(result))
    return result.exit_code


def _sides(
    a: str,
    b: str | None,
    cluster: str | None,
    profile: str | None,
    asked: Asked,
    held: Profile | None,
) -> Sides:
    """Both sides, and what was measured for it."""
    from patchq.config import cache_dir
    from patchq.render.progress import Bar
    from patchq.smoke.sides import beside, gathered

    if cluster is None:
        assert b is not None
        with Bar() as bar:
            return gathered(a, b, asked, held, cache=cache_dir(), progress=bar)
    saved, like = beside(a, asked.patience)
    made = on_cluster(cluster, profile, like)
    return [saved, (made, 0)], [made]
