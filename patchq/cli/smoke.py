"""`patchq smoke`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from patchq.cli.complete import cluster_names, probe_names, profile_names
from patchq.cli.options import Json

if TYPE_CHECKING:
    from patchq.cluster.profile import Profile
    from patchq.smoke.model import Golden
    from patchq.smoke.nodes import Nodes
    from patchq.smoke.report import Report


def command(
    url: Annotated[
        str | None,
        typer.Option("--url", metavar="URL", help="The server, as http://localhost:8000."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            metavar="C",
            help="Instead: what runs on ci/clusters/C.toml; its ranks, logs and memory too.",
            autocompletion=cluster_names,
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="P",
            help="Hold it against ci/profiles/P.toml: template, drafts, bounds.",
            autocompletion=profile_names,
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="PROBE",
            help="This probe alone; may be given again.",
            autocompletion=probe_names,
        ),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(
            "--replay", metavar="FILE", help="Ask this conversation (JSON) instead of the probes."
        ),
    ] = None,
    repeat: Annotated[
        int, typer.Option("--repeat", metavar="N", min=1, help="With --replay: how often.")
    ] = 1,
    patience: Annotated[
        float,
        typer.Option(
            "--patience", metavar="SECONDS", min=0.1, help="Without a byte for so long: no answer."
        ),
    ] = 120.0,
    rounds: Annotated[
        int,
        typer.Option(
            "--rounds", metavar="N", min=1, help="Ask everything N times, with new values."
        ),
    ] = 1,
    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="N", min=0, help="The questions of an earlier run again."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Keep what was found in this file."),
    ] = None,
    json: Json = False,
) -> int:
    """Ask a running server what a user would ask, and say what is wrong with the answers.

    Every answer is watched for spinning. Exit status 5 where a probe failed, 6 where one could not
    be run. A server's key is read from VLLM_API_KEY. What a cluster answers is kept as evidence.

    patchq smoke --cluster sparks --profile glm-5.3-flash

    patchq smoke --url http://localhost:8000 --only cache --only blocks

    patchq smoke --url http://localhost:8000 --replay conversation.json --repeat 20
    """
    from patchq.cli.evidence import keep
    from patchq.cli.out import give
    from patchq.errors import UsageError
    from patchq.render import smoke

    if (url is None) == (cluster is None):
        raise UsageError(
            "smoke of which server?",
            "start one, and name it: --cluster sparks, or --url http://localhost:8000",
        )
    if replay is not None and only:
        raise UsageError("--replay asks no probes", "leave --only out")
    if replay is None and repeat != 1:
        raise UsageError("--repeat is for a conversation", "name one with --replay FILE")
    wanted = _Wanted(tuple(only or ()), replay, repeat, rounds, patience, seed)
    if cluster is None:
        assert url is not None
        report = _asked(url, profile, wanted)
    else:
        report = _on(cluster, profile, wanted)
    if out is not None or wanted.whole:
        keep("smoke", smoke.as_json(report), report.runner, out)
    give(json, lambda: smoke.as_json(report), lambda: smoke.drawn(report))
    return report.exit_code


@dataclass(frozen=True)
class _Wanted:
    only: tuple[str, ...]
    replay: Path | None
    repeat: int
    rounds: int
    patience: float
    seed: int | None

    @property
    def whole(self) -> bool:
        """Whether all probes are asked: anything less is no evidence."""
        return not self.only and self.replay is None


def _on(cluster: str, profile: str | None, wanted: _Wanted) -> Report:
    """What runs on a cluster, under the locks of its nodes."""
    from dataclasses import replace

    from patchq.cli.evidence import identified
    from patchq.cluster.config import load
    from patchq.config import find_project
    from patchq.smoke.nodes import at_work

    project = find_project(Path.cwd())
    found = load(project.root, cluster)
    with at_work(project.root, found, profile, f"smoke {cluster}") as nodes:
        runner = identified(project, nodes)
        report = _asked(nodes.url, nodes.profile.name, wanted, nodes)
    return replace(report, runner=runner)


def _asked(url: str, profile: str | None, wanted: _Wanted, nodes: Nodes | None = None) -> Report:
    from patchq.render import smoke
    from patchq.smoke.asking import Setting
    from patchq.smoke.bounds import parse
    from patchq.smoke.catalog import REPLAY
    from patchq.smoke.client import Client
    from patchq.smoke.probes.replay import read
    from patchq.smoke.questions import Values, fresh_seed
    from patchq.smoke.run import chosen, rounds
    from patchq.smoke.spin import Limits

    held, goldens = _held(profile)
    bounds = parse(held.smoke if held else {}, f"ci/profiles/{profile}.toml")
    probes = chosen(wanted.only) if wanted.replay is None else (REPLAY,)
    client = Client(url, patience=wanted.patience, limits=Limits(reasoning=bounds.reasoning))
    setting = Setting(
        client,
        client.about(),
        Values(fresh_seed() if wanted.seed is None else wanted.seed),
        bounds=bounds,
        profile=profile,
        drafts=bool(held and held.speculation),
        goldens=goldens,
        nodes=nodes,
        conversation=None if wanted.replay is None else read(wanted.replay),
        repeat=wanted.repeat,
    )
    with smoke.Watched(probes) as view:
        return rounds(setting, probes, wanted.rounds, view)


def _held(name: str | None) -> tuple[Profile | None, tuple[Golden, ...] | None]:
    """The profile, and what its template renders; None where there is none."""
    if name is None:
        return None, None
    from patchq.cluster.profile import load
    from patchq.config import find_project
    from patchq.doctor.conversations import ALL
    from patchq.doctor.goldens import path_of, read
    from patchq.smoke.model import Golden

    root = find_project(Path.cwd()).root
    profile = load(root, name)
    wanted = read(root / path_of(profile.template)) if profile.template else None
    if wanted is None:
        return profile, None
    return profile, tuple(
        Golden(each.name, each.messages, each.tools, each.values, found.text, found.refused)
        for each in ALL
        if (found := wanted.get(each.name)) is not None
    )
