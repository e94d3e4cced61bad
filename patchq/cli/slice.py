"""`patchq slice plan|run|verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchq.cli.options import Json
from patchq.errors import ProofFailed, UsageError

ABOUT = """Cut an EXL3 checkpoint for the ranks of a cluster, and prove every rank's part.

patchq slice plan SRC --tp 2

patchq slice run SRC DST --tp 2 --layout per-rank

patchq slice verify DST --against SRC
"""

Source = Annotated[
    Path, typer.Argument(metavar="SRC", help="The checkpoint: a folder, or one .safetensors file.")
]
Ranks = Annotated[int, typer.Option("--tp", metavar="N", help="For how many ranks.")]
Uneven = Annotated[
    bool,
    typer.Option("--uneven", help="Where equal shares tear a block of 128, cut beside it."),
]
Tables = Annotated[
    list[Path] | None,
    typer.Option(
        "--families", metavar="FILE", help="A table of layer names, asked before patchq's own."
    ),
]


def plan(
    source: Source,
    tp: Ranks,
    uneven: Uneven = False,
    families: Tables = None,
    json: Json = False,
) -> int:
    """Say what SRC is, how each layer would be cut and why, from headers alone.

    Exit status 5 where something is refused.

    patchq slice plan ~/models/GLM-5.3-Flash-EXL3 --tp 2
    """
    from patchq.cli.out import give
    from patchq.exl3 import checkpoint
    from patchq.exl3.collector import aside
    from patchq.exl3.families import load
    from patchq.exl3.plan import plan as make
    from patchq.exl3.summary import summarize
    from patchq.render.progress import Bar

    with aside(), Bar() as bar:
        table = load(families or [])
        summary = summarize(make(checkpoint.read(source, bar), tp, table, uneven=uneven))

    def value() -> dict[str, object]:
        from patchq.render import slices_json

        return slices_json.plan(summary)

    def drawing() -> object:
        from patchq.render import slices

        return slices.plan(summary)

    give(json, value, drawing)
    return ProofFailed.exit_code if summary.refused else 0


def run(
    source: Source,
    target: Annotated[Path, typer.Argument(metavar="DST", help="A folder that is made.")],
    tp: Ranks,
    layout: Annotated[
        str,
        typer.Option(
            "--layout",
            metavar="shared|per-rank",
            help="All ranks in each shard, or shards of its own for each rank.",
        ),
    ] = "shared",
    uneven: Uneven = False,
    families: Tables = None,
    jobs: Annotated[
        int, typer.Option("--jobs", metavar="N", min=0, help="Shards at once; 0: 4.")
    ] = 0,
    no_sync: Annotated[
        bool,
        typer.Option("--no-sync", help="Do not wait for the disk, as cp does not."),
    ] = False,
    json: Json = False,
) -> None:
    """Cut SRC into the new folder DST. SRC stays as it is; DST is there when it is whole.

    After an interruption the same command goes on where it was.

    patchq slice run ~/models/GLM-5.3-Flash-EXL3 ~/models/GLM-5.3-Flash-tp2 --tp 2
    """
    from patchq.cli.out import give
    from patchq.exl3.families import load
    from patchq.exl3.layout import LAYOUTS
    from patchq.exl3.slice import run as cut
    from patchq.render.progress import Bar

    chosen = next((each for each in LAYOUTS if each == layout), None)
    if chosen is None:
        raise UsageError(f"{layout!r} is no layout", f"it is one of {', '.join(LAYOUTS)}")
    with Bar() as bar:
        report = cut(
            source,
            target,
            tp,
            load(families or []),
            layout=chosen,
            uneven=uneven,
            jobs=jobs,
            sync=not no_sync,
            progress=bar,
        )

    def value() -> dict[str, object]:
        from patchq.render import slices_json

        return slices_json.run(report)

    def drawing() -> object:
        from patchq.render import slices

        return slices.run(report)

    give(json, value, drawing)


def verify(
    target: Annotated[
        Path, typer.Argument(metavar="DST", help="What `slice run` made, or one node's part of it.")
    ],
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="SRC", help="The checkpoint that it was cut from."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Decode every weight, not a sample of them.")
    ] = False,
    families: Tables = None,
    json: Json = False,
) -> int:
    """Prove that DST is whole and, with --against, that it is SRC, bit for bit, for every rank.

    Prints a digest for each rank: equal digests on two nodes mean equal tensors. Exit status 5
    where something is wrong.

    patchq slice verify ~/models/GLM-5.3-Flash-tp2 --against ~/models/GLM-5.3-Flash-EXL3
    """
    from importlib.util import find_spec

    from patchq.cli.out import give
    from patchq.errors import PatchqError
    from patchq.render.progress import Bar

    if find_spec("numpy") is None:
        raise PatchqError(
            "verify decodes weights by numpy, which is not installed", "pip install numpy"
        )
    from patchq.exl3.families import load
    from patchq.exl3.verify import verify as prove

    with Bar() as bar:
        table = load(families) if families else None
        found = prove(target, against, full=full, families=table, progress=bar)

    def value() -> dict[str, object]:
        from patchq.render import slices_json

        return slices_json.verify(found)

    def drawing() -> object:
        from patchq.render import slices

        return slices.verify(found)

    give(json, value, drawing)
    return 0 if found.ok else ProofFailed.exit_code


commands = {"plan": plan, "run": run, "verify": verify}
