"""Bring a runner to all nodes: environment, wheels, and at last one link on each."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from patchq.cluster import errand, lock
from patchq.cluster.config import Cluster, Node
from patchq.cluster.nodes import Aloud, Reach, sound
from patchq.cluster.shell import Shell
from patchq.errors import Incomplete, PatchqError
from patchq.paths import show
from patchq.progress import SILENT, Progress


@dataclass(frozen=True)
class Wheel:
    """A file here, and its sha256."""

    path: Path
    sha256: str


@dataclass(frozen=True)
class Bundle:
    """What is deployed. `python`: the version ("3.12") that `requirements`, a lock's bytes, is for;
    no lock: every node names a `python`. `labels` are kept with it: what it is. `tells`: what
    else tells it from others of the same wheels. `packages`: a folder that holds what the lock
    names; None: pip gets it."""

    wheels: tuple[Wheel, ...]
    requirements: bytes | None
    python: str
    labels: Mapping[str, str] = field(default_factory=dict)
    tells: tuple[str, ...] = ()
    packages: Path | None = None

    @property
    def environment(self) -> str | None:
        """The name of the environment that is made of the lock."""
        if self.requirements is None:
            return None
        return _short(self.requirements + f"\nPython {self.python}\n".encode())


@dataclass(frozen=True)
class Deployed:
    """A node: the release that it has now, the one that it had, and what had to be brought."""

    node: Node
    digest: str
    was: str | None
    shipped: tuple[str, ...]
    installed: bool
    python: str


@dataclass(frozen=True)
class DeployReport:
    cluster: Cluster
    bundle: Bundle
    nodes: tuple[Deployed, ...]


@dataclass(frozen=True)
class _Ready:
    digest: str
    shipped: tuple[str, ...]
    installed: bool
    python: str


def deploy(cluster: Cluster, bundle: Bundle, *, progress: Progress = SILENT) -> DeployReport:
    """Make, ship, verify and install on all nodes; where all is well on all, switch them.

    Raises PatchqError; nothing is switched then. Ranks that run go on with what they have.
    """
    aloud = Aloud(progress)
    with Reach(cluster) as reach, lock.held(reach, f"cluster deploy {cluster.name}"):
        ready = sound(reach.each(lambda node, there: _prepare(there, node, bundle, aloud)))
        digests = {node.name: each.digest for node, each in zip(cluster.nodes, ready, strict=True)}

        def switch(node: Node, there: Shell) -> str | None:
            said = errand.run(there, node, "files.switch", {"digest": digests[node.name]})
            return None if said["was"] is None else str(said["was"])

        before = sound(reach.each(switch))
    return DeployReport(
        cluster,
        bundle,
        tuple(
            Deployed(node, each.digest, was, each.shipped, each.installed, each.python)
            for node, each, was in zip(cluster.nodes, ready, before, strict=True)
        ),
    )


def _prepare(there: Shell, node: Node, bundle: Bundle, progress: Progress) -> _Ready:
    folder = str(errand.run(there, node, "files.home", {}))
    python = _environment(there, node, bundle, folder, progress)
    shipped = _ship(there, node, bundle.wheels, folder, progress)
    sums = [each.sha256 for each in bundle.wheels]
    environment = python if node.python else str(bundle.environment)
    digest = _short("\n".join([*sums, environment, *bundle.tells]).encode())
    asked = {
        "digest": digest,
        "python": python,
        "wheels": [_there(folder, wheel) for wheel in bundle.wheels],
        "record": {
            "wheels": [{"name": each.path.name, "sha256": each.sha256} for each in bundle.wheels],
            "environment": None if node.python else bundle.environment,
            "python": python,
            "labels": dict(bundle.labels),
            "by": lock.whoami(),
            "deployed": time.time(),
        },
    }
    progress.step(f"installing on {node.name}")
    said, words = errand.stream(there, node, "files.install", asked, lambda _: None)
    if said is None or "error" in said:
        why = words if said is None else str(said["error"])
        raise _unmade(node, why, "the wheels were not installed")
    return _Ready(digest, shipped, bool(said["installed"]), python)


def _environment(there: Shell, node: Node, bundle: Bundle, folder: str, progress: Progress) -> str:
    """The environment's interpreter on the node, absolute."""
    if node.python is not None:
        given = _interpreter(there, node, [node.python])
        if given is None:
            raise PatchqError(
                f"{node.name} has no Python {node.python}",
                f"correct `python` of {node.name}, or leave it out: an environment is made then",
            )
        return given
    if bundle.requirements is None or bundle.environment is None:
        raise PatchqError(
            f"there are no locked requirements for an environment on {node.name}",
            f"run `patchq lock --requirements`, or name the `python` of one in {node.name}",
        )
    made = f"{folder}/environments/{bundle.environment}"
    names = [f"python{bundle.python}", "python3"]
    base = _interpreter(there, node, names, bundle.python)
    if base is None:
        raise PatchqError(
            f"{node.name} has no Python {bundle.python}, which the locked requirements are for",
            f"install it (Debian, Ubuntu: apt-get install python{bundle.python}-venv)",
        )
    lock_there = f"{folder}/requirements/{bundle.environment}.lock"
    _write(there, bundle.requirements, lock_there)

    def sink(chunk: bytes) -> None:
        for words in chunk.decode("utf-8", "replace").strip().splitlines()[-1:]:
            progress.step(f"{node.name}: {words[:100]}")

    asked: dict[str, Any] = {"key": bundle.environment, "python": base}
    asked |= {"requirements": lock_there, "packages": None}
    shipped = node.ssh is not None and bundle.packages is not None
    if bundle.packages is not None:
        asked["packages"] = f"{folder}/packages" if shipped else str(bundle.packages)
    if shipped and bundle.packages is not None:
        progress.step(f"shipping the packages to {node.name}")
        there.send(bundle.packages, asked["packages"])
    progress.step(f"making the environment on {node.name}")
    made_now, words = errand.stream(there, node, "files.environment", asked, sink)
    if shipped:
        there.run(["rm", "-rf", "--", asked["packages"]])
    if made_now is None:
        raise _unmade(node, words, "its environment was not made")
    return f"{made}/bin/python"


def _interpreter(
    there: Shell, node: Node, names: Sequence[str], version: str | None = None
) -> str | None:
    """The first of `names` that runs, and is of `version`."""
    for name in names:
        said: dict[str, Any] = errand.run(there, node, "files.python", {"python": name})
        if said["version"] is not None and version in (None, said["version"]):
            return str(said["path"])
    return None


def _write(there: Shell, data: bytes, path: str) -> None:
    done = there.run(
        ["sh", "-c", 'mkdir -p -- "$(dirname -- "$1")" && cat >"$1"', "sh", path], input=data
    )
    if done.code != 0:
        why = show(done.stderr.decode("utf-8", "replace").strip())[:200]
        raise Incomplete(f"{path} was not written on {there.name}: {why}", "mend that there")


def _ship(
    there: Shell, node: Node, wheels: Sequence[Wheel], folder: str, progress: Progress
) -> tuple[str, ...]:
    """Bring the wheels that are not there, each verified there; the names of those."""
    paths = {wheel: _there(folder, wheel) for wheel in wheels}

    def differing() -> list[Wheel]:
        asked = {"paths": list(paths.values())}
        said = errand.run(there, node, "files.digests", asked)
        return [wheel for wheel, path in paths.items() if said[path] != wheel.sha256]

    wanted = differing()
    for wheel in wanted:
        size = wheel.path.stat().st_size / 1e6
        progress.step(f"shipping {wheel.path.name} ({size:.1f} MB) to {node.name}")
        # One of that name with other bytes: rsync may take its size and time for the same.
        there.run(["rm", "-f", "--", paths[wheel]])
        there.send(wheel.path, paths[wheel])
    if wanted and (wrong := differing()):
        there.run(["rm", "-f", "--", *(paths[wheel] for wheel in wrong)])
        raise PatchqError(
            f"{wrong[0].path.name} has other bytes on {node.name} than here",
            "see to its disk and to the way there; if it was built anew meanwhile, deploy again",
        )
    return tuple(wheel.path.name for wheel in wanted)


def _there(folder: str, wheel: Wheel) -> str:
    return f"{folder}/artifacts/{wheel.path.name}"


def _unmade(node: Node, words: str, what: str) -> PatchqError:
    """What pip's words mean."""
    if "No space left on device" in words:
        return errand.no_space(node, "the runner and its environment")
    if "No module named pip" in words or "ensurepip" in words:
        return PatchqError(
            f"{node.name}: {what}, for its Python has no pip",
            "install pip and venv for it (Debian, Ubuntu: apt-get install python3-venv)",
        )
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")] or lines[-1:]
    why = show(errors[0].removeprefix("ERROR: "))[:300] if errors else "pip does not say why"
    return Incomplete(f"{node.name}: {what}: {why}", "mend that, then deploy again")


def _short(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
