"""`ci/profiles/NAME.toml`: what a runner serves, and how. Part of the runner lock.

model = "NAME"            a [[model]] of upstream/dependencies.toml; the node has it in its models
draft, template           likewise; left out: none
served_name = "NAME"      what clients call it
tensor_parallel = 2       ranks that share each layer; pipeline_parallel: groups of layers
[flags]                   of `vllm serve`, without dashes: a text or number, a list, a table (JSON),
                          true (the flag alone) or false (with `no-` before it)
[speculation]             the speculative configuration, without the drafter's path
[environment]             what every rank gets
[limits]                  ready: seconds in which it must serve; memory: GiB that must stay
                          available on each node meanwhile
[smoke]                   what the runner has to reach (patchq/smoke/bounds.py)
[bench]                   how much slower it may be than another (patchq/smoke/sides.py)
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from patchq.cluster import table
from patchq.cluster.table import NAME, Table, environment
from patchq.errors import UsageError

Value = str | int | float | bool | list[Any] | dict[str, Any]

_KEYS = (
    "model",
    "draft",
    "template",
    "served_name",
    "tensor_parallel",
    "pipeline_parallel",
    "flags",
    "speculation",
    "environment",
    "limits",
    "smoke",
    "bench",
)
_FLAG = re.compile(r"[a-z][a-z0-9-]*(?:\.[a-z_]+)*")
_LIMITS = ("ready", "memory")
COMPOSED = frozenset(
    {
        "chat-template",
        "distributed-executor-backend",
        "headless",
        "master-addr",
        "master-port",
        "model",
        "nnodes",
        "node-rank",
        "pipeline-parallel-size",
        "port",
        "served-model-name",
        "speculative-config",
        "tensor-parallel-size",
    }
)
"""Flags that a launch sets itself."""


@dataclass(frozen=True)
class Limits:
    """`ready` in seconds, `memory` in GiB."""

    ready: float = 3600
    memory: float = 0


@dataclass(frozen=True)
class Profile:
    """Flags, speculation and environment in the order of the file."""

    name: str
    model: str
    served_name: str
    draft: str | None = None
    template: str | None = None
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    flags: Mapping[str, Value] = field(default_factory=dict)
    speculation: Mapping[str, Value] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = Limits()
    smoke: Mapping[str, Any] = field(default_factory=dict)
    bench: Mapping[str, Any] = field(default_factory=dict)


def names(root: Path) -> list[str]:
    """The profiles of the project in the folder `root`, sorted."""
    return table.names(root, "profile")


def load(root: Path, name: str) -> Profile:
    """The profile `name`. Raises PatchqError where there is none, or its file is malformed."""
    data, where = table.read(root, "profile", name)
    return parse(data, name, where)


def choose(root: Path, name: str | None) -> Profile:
    """The profile `name`, or the only one. Raises UsageError where there are several."""
    there = names(root)
    if name is None and len(there) != 1:
        raise UsageError(
            "which profile?", f"name one with --profile: {', '.join(there) or 'there is none'}"
        )
    return load(root, there[0] if name is None else name)


def identity(root: Path, profile: Profile) -> dict[str, str]:
    """What is kept with the ranks that serve it: what it is, and the bytes that said so."""
    path = root / "ci" / "profiles" / f"{profile.name}.toml"
    return described(profile, path.read_bytes())


def described(profile: Profile, text: bytes) -> dict[str, str]:
    """The same of a profile whose file is `text`."""
    digest = hashlib.sha256(text).hexdigest()
    given = {"model": profile.model, "draft": profile.draft, "template": profile.template}
    kept = {key: value for key, value in given.items() if value}
    return {"profile_sha256": digest, "served_name": profile.served_name, **kept}


def parse(data: Mapping[str, Any], name: str, where: str) -> Profile:
    """What a profile's file says. Raises PatchqError."""
    file = Table(data, where, _KEYS)
    draft, template = _name(file, "draft", ""), _name(file, "template", "")
    speculation = _values(data.get("speculation", {}), f"{where}, speculation")
    if "model" in speculation:
        raise file.wrong("speculation names a model", 'write draft = "NAME" above the tables')
    if draft and not speculation:
        raise file.wrong("it has a draft, but no speculation", "write [speculation], or no draft")
    return Profile(
        name=name,
        model=_name(file, "model"),
        served_name=file.text("served_name"),
        draft=draft or None,
        template=template or None,
        tensor_parallel=_parallel(file, "tensor_parallel"),
        pipeline_parallel=_parallel(file, "pipeline_parallel"),
        flags=_flags(data.get("flags", {}), f"{where}, flags"),
        speculation=speculation,
        environment=environment(data.get("environment", {}), where),
        limits=_limits(data.get("limits", {}), where),
        smoke=dict(Table(data.get("smoke", {}), f"{where}, smoke", None).data),
        bench=dict(Table(data.get("bench", {}), f"{where}, bench", None).data),
    )


def _name(file: Table, key: str, default: str | None = None) -> str:
    text = file.text(key, default)
    if text and not NAME.fullmatch(text):
        raise file.wrong(
            f"{key} = {text!r} is no name", "write one of upstream/dependencies.toml, not a path"
        )
    return text


def _parallel(file: Table, key: str) -> int:
    return file.whole(key, 1, 1024) if key in file.data else 1


def _flags(entry: Any, where: str) -> dict[str, Value]:
    for key in Table(entry, where, None).data:
        flag = key.removeprefix("no-")
        if not _FLAG.fullmatch(key):
            raise Table({}, where, None).wrong(
                f"{key!r} is no flag", "write it without dashes before"
            )
        if flag in COMPOSED:
            raise Table({}, where, None).wrong(
                f"{key} is set at every start", "leave it out: other keys and the cluster say it"
            )
    return _values(entry, where)


def _values(entry: Any, where: str) -> dict[str, Value]:
    fields = Table(entry, where, None)
    for key, value in fields.data.items():
        good = isinstance(value, str | int | float | list | dict)
        if not good or (isinstance(value, str) and (not value or "\0" in value)):
            raise fields.wrong(f"{key} is empty or a date", "write a text, number, list or table")
        if isinstance(value, list) and not all(
            isinstance(each, str | int | float) for each in value
        ):
            raise fields.wrong(f"{key} is a list of lists", "write texts or numbers in it")
    return dict(fields.data)


def _limits(entry: Any, where: str) -> Limits:
    fields = Table(entry, f"{where}, limits", _LIMITS)
    for key, value in fields.data.items():
        if type(value) not in (int, float) or not 0 <= value < 1e6:
            raise fields.wrong(f"{key} = {value!r} is no number", "write, say, 3600")
    return Limits(**fields.data)
