"""What runs on a cluster, as its nodes say it: wheels, model, draft, template, machines."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

from patchq.cluster import facts, ranks
from patchq.cluster import profile as profiles
from patchq.cluster.config import Cluster, Node
from patchq.cluster.facts import Facts, File
from patchq.cluster.nodes import Reach, sound
from patchq.cluster.profile import Profile
from patchq.cluster.ranks import Status
from patchq.cluster.shell import Shell
from patchq.config import Project
from patchq.errors import PatchqError
from patchq.paths import show
from patchq.smoke.identity import Identity, NodeIs


def identify(project: Project, cluster: Cluster, profile: Profile, reach: Reach) -> Identity:
    """The runner that runs there now, held against the project's profile.

    Of model and draft the digest is over names, sizes and headers (`cluster.probe.content`), of the
    template it is its sha256. Raises PatchqError where a rank does not run, where the nodes differ,
    where what runs is another than what is deployed or than the present profile, or was built
    without a runner lock; Incomplete where a node is not reached.
    """
    states = sound(reach.each(lambda node, there: ranks.ask(there, node, 0)))
    about, release = _agreed(project, cluster, profile, states)
    labels = release.get("labels") or {}
    if not labels.get("lock") or not labels.get("tree"):
        raise PatchqError(
            f"what runs on {cluster.name} was built without a runner lock",
            f"`patchq lock`, build again, then `patchq cluster deploy {cluster.name}`",
        )

    def ask(node: Node, there: Shell) -> Facts:
        return facts.ask(there, cluster, node, paths(node, profile))

    found = sound(reach.each(ask))
    digests = {kind: _digest(kind, found) for kind in paths(cluster.nodes[0], profile)}
    return Identity(
        lock=str(labels["lock"]),
        tree=str(labels["tree"]),
        profile=profile.name,
        profile_sha256=str(about["profile_sha256"]),
        model=digests["model"],
        draft=digests.get("draft"),
        template=digests.get("template"),
        artifacts=tuple(sorted((str(w["name"]), str(w["sha256"])) for w in release["wheels"])),
        cluster=cluster.name,
        nodes=tuple(_node(*each) for each in zip(cluster.nodes, found, strict=True)),
    )


def paths(node: Node, profile: Profile) -> dict[str, str]:
    """Where the node has what the profile serves, as `cluster start` takes it."""
    found = {"model": os.path.join(node.models, profile.model)}
    if profile.draft:
        found["draft"] = os.path.join(node.models, profile.draft)
    if profile.template:
        found["template"] = os.path.join(node.folder, "templates", f"{profile.template}.jinja")
    return found


def _agreed(
    project: Project, cluster: Cluster, profile: Profile, states: Sequence[Status]
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """What all ranks were started as, and the release that they were started from."""
    wanted = profiles.identity(project.root, profile)["profile_sha256"]
    again = f"`patchq cluster stop {cluster.name}`, then start it again"
    for state in states:
        if state.rank is None or not state.alive:
            raise PatchqError(
                f"rank {state.node.rank} does not run on {state.node.name}",
                f"`patchq cluster start {cluster.name} --profile {profile.name}`",
            )
        about = state.rank["about"]
        if about.get("profile") != profile.name:
            raise PatchqError(
                f"{cluster.name} serves {show(str(about.get('profile')))}, not {profile.name}",
                "name that profile, or start the other",
            )
        if about.get("profile_sha256") != wanted:
            raise PatchqError(
                f"ci/profiles/{profile.name}.toml changed since {cluster.name} was started", again
            )
        if state.current is None or state.current["digest"] != about.get("release"):
            raise PatchqError(
                f"{state.node.name} runs another release than the one that is deployed there", again
            )
    releases = [state.current for state in states if state.current is not None]
    first = releases[0]
    if any(each["wheels"] != first["wheels"] for each in releases):
        raise PatchqError(
            f"the nodes of {cluster.name} run different wheels",
            f"`patchq cluster deploy {cluster.name}` brings one to all; {again}",
        )
    assert states[0].rank is not None
    return states[0].rank["about"], first


def _digest(kind: str, found: Sequence[Facts]) -> str:
    """One for all nodes; where each has its own (a model cut for the ranks), of all of them."""
    each = []
    for answer in found:
        files = (answer.files or {}).get(kind)
        if files is None:
            raise PatchqError(
                f"a node cannot say what its {kind} is: {answer.failed.get('files', 'not there')}",
                "see `patchq doctor --cluster`",
            )
        each.append(_of(files))
    return each[0] if len(set(each)) == 1 else hashlib.sha256("\n".join(each).encode()).hexdigest()


def _of(files: Sequence[File]) -> str:
    if [file.name for file in files] == [""]:
        return files[0].digest
    lines = (f"{file.digest} {file.size} {file.name}\n" for file in files)
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def _node(node: Node, found: Facts) -> NodeIs:
    devices = found.gpu.devices if found.gpu else ()
    gpu = ", ".join(name for name, _ in devices) or None
    return NodeIs(node.name, node.rank, found.machine, gpu, found.driver)
