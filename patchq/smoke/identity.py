"""What evidence is bound to: the runner, its model, its profile, and the nodes that it ran on."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

from patchq.smoke import forms

_SHA256 = re.compile(r"[0-9a-f]{64}")
_TREE = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_WORDS = re.compile(r"[^\x00-\x1f\x7f]{1,300}")


@dataclass(frozen=True)
class NodeIs:
    """A node as it was found: `machine` is its processor (aarch64, ...), `gpu` and `driver` None
    where it has none."""

    name: str
    rank: int
    machine: str
    gpu: str | None
    driver: str | None


@dataclass(frozen=True)
class Identity:
    """`lock` is the runner lock's digest, `tree` the runner tree; `artifacts` are the names and
    sha256 of the wheels, sorted; `model`, `draft` and `template` are the digests that were found
    on the nodes, None where the profile has none; `nodes` stand by rank."""

    lock: str
    tree: str
    profile: str
    profile_sha256: str
    model: str | None
    draft: str | None
    template: str | None
    artifacts: tuple[tuple[str, str], ...]
    cluster: str
    nodes: tuple[NodeIs, ...]


def as_json(identity: Identity) -> dict[str, Any]:
    """The key `runner` of `patchq.smoke/1`, `patchq.bench/1` and `patchq.compare/1`."""
    return {
        **asdict(identity),
        "artifacts": [{"name": name, "sha256": sha256} for name, sha256 in identity.artifacts],
        "nodes": [asdict(node) for node in identity.nodes],
    }


def maybe_json(identity: Identity | None) -> dict[str, Any] | None:
    """The key `runner` of a report: None where it is bound to nothing."""
    return None if identity is None else as_json(identity)


def read(entry: Any) -> Identity:
    """What `as_json` made. Raises ValueError for anything else."""
    table = forms.table(entry, Identity.__dataclass_fields__)
    artifacts = tuple(map(_artifact, forms.items(table["artifacts"])))
    nodes = tuple(map(_node, forms.items(table["nodes"])))
    if artifacts != tuple(sorted(set(artifacts))):
        raise ValueError("the artifacts are not sorted, or one stands twice")
    if [node.rank for node in nodes] != list(range(len(nodes))):
        raise ValueError("the nodes are not in the order of their ranks")
    return Identity(
        lock=forms.text(table["lock"], _SHA256),
        tree=forms.text(table["tree"], _TREE),
        profile=forms.text(table["profile"], _WORDS),
        profile_sha256=forms.text(table["profile_sha256"], _SHA256),
        model=_maybe(table["model"]),
        draft=_maybe(table["draft"]),
        template=_maybe(table["template"]),
        artifacts=artifacts,
        cluster=forms.text(table["cluster"], _WORDS),
        nodes=nodes,
    )


def _artifact(entry: Any) -> tuple[str, str]:
    table = forms.table(entry, ("name", "sha256"))
    return forms.text(table["name"], _WORDS), forms.text(table["sha256"], _SHA256)


def _node(entry: Any) -> NodeIs:
    table = forms.table(entry, NodeIs.__dataclass_fields__)
    return NodeIs(
        forms.text(table["name"], _WORDS),
        int(forms.number(table["rank"])),
        forms.text(table["machine"], _WORDS),
        _maybe(table["gpu"]),
        _maybe(table["driver"]),
    )


def _maybe(value: Any) -> str | None:
    return None if value is None else forms.text(value, _WORDS)
