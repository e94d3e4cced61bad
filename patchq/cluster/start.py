"""Start a profile on a cluster: headless ranks first, until it serves or nothing is left of it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from patchq.cluster import errand, facts, lock
from patchq.cluster.causes import Cause, cause
from patchq.cluster.config import Cluster, Node
from patchq.cluster.launch import Launch, Place, compose, place
from patchq.cluster.lock import when
from patchq.cluster.nodes import Reach, sound
from patchq.cluster.profile import Profile
from patchq.cluster.ranks import (
    Status,
    StopReport,
    ask,
    blamed,
    fate,
    stop_ranks,
    why_ended,
)
from patchq.cluster.shell import Shell
from patchq.errors import PatchqError
from patchq.paths import show
from patchq.progress import SILENT, Progress

POLL = 1.0
"""Seconds between two looks."""
MISSES = 3
"""Looks in a row that a node may leave unanswered."""
PATIENCE = 10.0
"""Seconds in which a rank ends after a start that failed."""
LINES = 20
"""A rank's last lines that are shown when it ended."""
EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - where a server listens by itself


@dataclass(frozen=True)
class Failure:
    """Why it does not serve: a sentence, what to do, the words of the rank that is to blame."""

    says: str
    remedy: str
    node: Node | None = None
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class StartReport:
    """A start. With a `failure` everything was stopped again; `left` says what was not."""

    cluster: Cluster
    profile: Profile
    run: str
    url: str
    seconds: float
    ranks: tuple[Status, ...] = ()
    failure: Failure | None = None
    left: StopReport | None = None

    @property
    def exit_code(self) -> int:
        return 0 if self.failure is None else 6


@dataclass
class _Watched:
    """What is known of the ranks while they start."""

    last: dict[str, Status] = field(default_factory=dict)
    missed: dict[str, int] = field(default_factory=dict)


def start(
    cluster: Cluster,
    profile: Profile,
    about: Mapping[str, str] | None = None,
    *,
    progress: Progress = SILENT,
) -> StartReport:
    """Start all ranks of what is deployed, and wait until `/health` answers.

    `about` is kept with the ranks: what they are. Raises PatchqError where nothing was started: a
    rank runs already, a port is taken, a node has no runner or another one, a file is missing.
    Whatever ends the wait, a Ctrl-C included, stops the ranks again.
    """
    with Reach(cluster) as reach, lock.held(reach, f"cluster start {cluster.name}"):
        releases = _ready(reach)
        launches = _launches(reach, profile, releases)
        run = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        host = str(profile.flags.get("host", ""))
        host = cluster.nodes[0].address if host in ("", *EVERYWHERE) else host
        begun = time.monotonic()
        report = StartReport(cluster, profile, run, url(host, cluster.port), 0.0)
        try:
            for launch in launches:
                progress.step(f"starting rank {launch.node.rank} on {launch.node.name}")
                told = {**(about or {}), "profile": profile.name}
                _begin(reach, launch, releases[launch.node.name], run, host, told)
            watched, failure = _wait(reach, profile, begun, progress)
        except BaseException:
            stop_ranks(reach, cluster.nodes, PATIENCE, progress)
            raise
        seconds = time.monotonic() - begun
        if failure is None:
            ranks = tuple(watched[node.name] for node in cluster.nodes)
            return StartReport(cluster, profile, run, report.url, seconds, ranks)
        stopped = StopReport(cluster, stop_ranks(reach, cluster.nodes, PATIENCE, progress))
        left = stopped if stopped.exit_code else None
        return StartReport(cluster, profile, run, report.url, seconds, failure=failure, left=left)


def _ready(reach: Reach) -> dict[str, Mapping[str, Any]]:
    """The releases of the nodes, by their names, where all have the same and nothing runs."""
    nodes = reach.cluster.nodes
    states = sound(reach.each(lambda node, there: ask(there, node, 0)))
    for node, state in zip(nodes, states, strict=True):
        if state.rank is not None and state.processes:
            raise PatchqError(
                f"rank {node.rank} runs on {node.name} since {when(state.rank['since'])}, started"
                f" by {show(str(state.rank['by']))}",
                f"`patchq cluster stop {reach.cluster.name}` stops it",
            )
    releases = {}
    for node, state in zip(nodes, states, strict=True):
        if state.current is None:
            raise PatchqError(
                f"{node.name} has no runner",
                f"`patchq cluster deploy {reach.cluster.name}` brings one there",
            )
        releases[node.name] = state.current
    first = nodes[0]
    for node in nodes[1:]:
        if releases[node.name]["wheels"] != releases[first.name]["wheels"]:
            raise PatchqError(
                f"{first.name} has {_wheel(releases[first.name])}, {node.name} has"
                f" {_wheel(releases[node.name])}, and they are not the same",
                f"`patchq cluster deploy {reach.cluster.name}` brings one to all",
            )
    return releases


def _wheel(release: Mapping[str, Any]) -> str:
    first = release["wheels"][0]
    return f"{show(str(first['name']))} ({str(first['sha256'])[:12]})"


def _launches(
    reach: Reach, profile: Profile, releases: Mapping[str, Mapping[str, Any]]
) -> tuple[Launch, ...]:
    cluster = reach.cluster
    found = sound(reach.each(lambda node, there: facts.ask(there, cluster, node)))
    places: dict[str, Place] = {}
    programs: dict[str, str] = {}
    for node, answer in zip(cluster.nodes, found, strict=True):
        for port, holder in sorted((answer.ports or {}).items()):
            if holder is not None:
                key = "port" if port == cluster.port else "master_port"
                raise PatchqError(
                    f"port {port} of {node.name} is taken by {show(holder)}",
                    f"stop that, or give `{key}` of {cluster.name} another number",
                )
        places[node.name] = place(cluster, node, answer)
        programs[node.name] = f"releases/{releases[node.name]['digest']}/bin/vllm"
    return compose(profile, cluster, places, programs)


def _begin(
    reach: Reach,
    launch: Launch,
    release: Mapping[str, Any],
    run: str,
    host: str,
    about: Mapping[str, str],
) -> None:
    node = launch.node
    folder = f"{launch.folder}/releases/{release['digest']}"
    asked = {
        "rank": node.rank,
        "run": run,
        "by": lock.whoami(),
        "about": {**about, "release": release["digest"]},
        "host": host,
        "port": reach.cluster.port if node.rank == 0 else None,
        "needs": launch.needs,
        "command": launch.command,
        "environment": {"PYTHONUNBUFFERED": "1", **launch.environment, "PYTHONPATH": folder},
        "path": [f"{folder}/bin", str(release["python"]).rpartition("/")[0]],
    }
    said = errand.run(reach.shell(node), node, "ranks.start", asked)
    if missing := said.get("missing"):
        raise PatchqError(
            f"{node.name} has no {', '.join(map(show, missing))}",
            "bring it there (docs/clusters.md says where), or correct the profile",
        )
    if "running" in said:
        raise PatchqError(
            f"rank {node.rank} still ends on {node.name}", "run it again in some seconds"
        )


def _wait(
    reach: Reach, profile: Profile, begun: float, progress: Progress
) -> tuple[dict[str, Status], Failure | None]:
    watched = _Watched()
    nodes = reach.cluster.nodes

    def look(node: Node, there: Shell) -> Status:
        return ask(there, node, LINES)

    while True:
        for node, answer in zip(nodes, reach.each(look), strict=True):
            if isinstance(answer, PatchqError):
                watched.missed[node.name] = watched.missed.get(node.name, 0) + 1
                if watched.missed[node.name] == MISSES:
                    return watched.last, Failure(answer.message, answer.hint, node)
            else:
                watched.missed[node.name] = 0
                watched.last[node.name] = answer
        if ended := [each for each in watched.last.values() if not each.alive]:
            return watched.last, _ended(ended)
        first = watched.last.get(nodes[0].name)
        if first is not None and first.health == 200 and len(watched.last) == len(nodes):
            return watched.last, None
        waited = time.monotonic() - begun
        if waited > profile.limits.ready:
            return watched.last, _late(profile, first)
        words = first.lines[-1] if first is not None and first.lines else "waiting"
        progress.step(f"rank 0: {words[:100]}", int(waited), int(profile.limits.ready), "s")
        time.sleep(POLL)


def _ended(ended: Sequence[Status]) -> Failure:
    """The rank that is to blame, of those that ended."""
    state = blamed(ended)
    why = why_ended(state)
    return Failure(
        fate(state),
        why.remedy if why else "its last lines say why",
        state.node,
        state.lines,
    )


def _late(profile: Profile, first: Status | None) -> Failure:
    why: Cause | None = cause(first.lines, 0) if first is not None else None
    frozen = first is not None and first.frozen
    return Failure(
        f"{profile.name} did not serve within {profile.limits.ready:g} s"
        + (f": {why.says}" if why else ": rank 0 is frozen" if frozen else ""),
        why.remedy
        if why
        else f"see what it waits for, or raise `ready` in {profile.name}'s limits",
        first.node if first is not None else None,
        first.lines if first is not None else (),
    )


def url(host: str, port: int) -> str:
    """The address of a server."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
