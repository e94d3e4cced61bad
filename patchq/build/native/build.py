"""The native part of a runner: planned from the store, compiled on a node, brought back."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from patchq.build.fatbin import architectures
from patchq.build.native import runner, source, steps
from patchq.build.native.model import Facts
from patchq.build.native.node import Node, Tools, look
from patchq.build.native.plan import NativePlan, plan
from patchq.build.native.runner import Ran
from patchq.build.native.trees import StoreTree
from patchq.build.overlay import Wanted, sorted_changes
from patchq.build.target import Target
from patchq.cluster import nodes
from patchq.cluster.config import load
from patchq.cluster.shell import Shell, local
from patchq.errors import PatchqError, ProofFailed
from patchq.gitstore.store import Store
from patchq.paths import lossless
from patchq.progress import SILENT, Progress

FACTS = {
    # GB10. CMake makes of 12.1a what the release supports: 12.0f, the family that it belongs to.
    "spark": Facts("cuda", "12.1a", "13.0"),
    "cuda-x86_64": Facts("cuda", "9.0a", "13.0"),
    "cpu": Facts("cpu"),
}


def sound(made: NativePlan) -> None:
    """Raises ProofFailed where Python calls an operator in a way that its new schema refuses."""
    for each in made.findings:
        if each.certain:
            call = each.call
            raise ProofFailed(
                f"{call.path}:{call.line} calls {each.operator}: {each.says}",
                "change the caller with the schema; `patchq build --plan` shows both lines",
            )


@contextmanager
def node_of(root: Path, cluster: str | None, cache: Path) -> Iterator[tuple[Shell, str]]:
    """Where native code is compiled, and in which folder there: the first node of the cluster, or
    this machine. Raises PatchqError for a cluster that is none.
    """
    if cluster is None:
        with local() as shell:
            yield shell, str(cache / "native")
        return
    found = load(root, cluster)
    first = found.nodes[0]
    with nodes.shell(found, first) as shell:
        yield shell, f"{first.folder}/native"


def planned(store: Store, wanted: Wanted, target: Target) -> NativePlan:
    """What the series has compiled anew for `target`. Raises as `plan` does."""
    changed = [lossless(path) for path in sorted_changes(store, wanted).native]
    if not changed:
        return NativePlan(FACTS[target.name])
    old, new = StoreTree(store, wanted.base), StoreTree(store, wanted.tree)
    return plan(old, new, changed, FACTS[target.name])


def compile_objects(
    shell: Shell,
    store: Store,
    wanted: Wanted,
    made: NativePlan,
    folder: str,
    logs: Path,
    *,
    tools: Tools = Tools(),  # noqa: B008 - frozen
    offline: bool = False,
    progress: Progress = SILENT,
) -> tuple[Node, tuple[Ran, ...]]:
    """The changed objects for themselves, on the node. Raises as the runner does."""
    folder = _absolute(shell, folder)
    found = look(shell, tools, cuda=made.facts.device == "cuda")
    source.send(shell, store, wanted.tree, folder, progress)
    todo = steps.alone(made, tools, found, folder)
    return found, runner.run(shell, todo, folder, logs, offline=offline, progress=progress)


def compile_all(
    shell: Shell,
    store: Store,
    wanted: Wanted,
    made: NativePlan,
    machine: str,
    folder: str,
    logs: Path,
    *,
    tools: Tools = Tools(),  # noqa: B008 - frozen
    offline: bool = False,
    progress: Progress = SILENT,
) -> dict[str, Path]:
    """The changed objects, then the extensions that they belong to.

    Raises as the runner does, and PatchqError on a node that is no `machine` ("aarch64").
    """
    sound(made)
    if not made.compiles:
        return {}
    folder = _absolute(shell, folder)
    _same_machine(shell, machine)
    source.send(shell, store, wanted.tree, folder, progress)
    listed, digest = _requirements(StoreTree(store, wanted.tree), made.facts)
    first = steps.environment(tools, folder, listed, digest)
    runner.run(shell, first, folder, logs, offline=offline, progress=progress)
    inner = replace(tools, python=steps.python_of(folder))
    found, _ = compile_objects(
        shell, store, wanted, made, folder, logs, tools=inner, offline=offline, progress=progress
    )
    todo = steps.extensions(made, inner, found, folder, wanted.tree)
    runner.run(shell, todo, folder, logs, offline=offline, progress=progress)
    return _fetched(shell, made, folder, logs / "libraries")


def _fetched(shell: Shell, made: NativePlan, folder: str, here: Path) -> dict[str, Path]:
    """Bring the libraries here, by their path in the wheel; checks what code is in them."""
    found: dict[str, Path] = {}
    wanted = {each.extension.name: steps.expected(each.extension) for each in made.works}
    for base, names in (("out", list(wanted)), ("src", ["_rust*", "vllm-rs"] if made.rust else [])):
        for name in names:
            pattern = name if "*" in name or base == "src" else f"{name}.*so"
            top = posixpath.join(folder, base, "vllm")
            done = shell.run(["find", top, "-maxdepth", "2", "-name", pattern, "-type", "f"])
            paths = done.stdout.decode("utf-8", "surrogateescape").split("\n")
            for path in filter(None, paths):
                inner = posixpath.relpath(path, posixpath.join(folder, base))
                local = here / inner
                shell.fetch(path, local)
                found[inner] = local
                if wanted.get(name):
                    runner.require(inner, architectures(local), wanted[name])
            if not any(paths):
                raise PatchqError(
                    f"{shell.name} built {name}, and there is no such library in {top}",
                    "see the log of its install step",
                )
    return found


def _requirements(tree: StoreTree, facts: Facts) -> tuple[str, str]:
    """The file that says what the device's build needs, and its digest."""
    paths = (f"requirements/build/{facts.device}.txt", "requirements/build.txt")
    for path in paths:
        data = tree.read(path)
        if data is not None:
            return path, hashlib.sha256(data).hexdigest()
    raise PatchqError(
        f"the runner tree has no {paths[0]}",
        "native code of this release has to be built by hand",
    )


def _absolute(shell: Shell, folder: str) -> str:
    made = shell.run(["mkdir", "-p", "--", folder])
    found = shell.run(["realpath", "--", folder])
    path = found.stdout.decode("utf-8", "surrogateescape").strip()
    if made.code or found.code or not path:
        raise PatchqError(
            f"{shell.name} cannot make the folder {folder}",
            "name another folder for the node, or make room there",
        )
    return path


def _same_machine(shell: Shell, machine: str) -> None:
    found = shell.run(["uname", "-m"]).stdout.decode("ascii", "replace").strip()
    if found != machine:
        raise PatchqError(
            f"{shell.name} is {found or 'unknown'}, and the target is {machine}",
            "name the nodes that it is for: --cluster, or take another --target",
        )
