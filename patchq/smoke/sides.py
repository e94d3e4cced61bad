"""What `patchq bench` and `patchq compare` are asked: sides, sizes, margins.

A side is an address, or a saved bench, `FILE` or `FILE#LABEL` where it holds several. A profile
says how much slower than the other side its runner may be at most, as a ratio below 1:

[bench]
structured = 0.97         of text that a drafter can foretell
prose = 0.95              of everything else
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.errors import PatchqError, UsageError
from patchq.progress import SILENT, Progress
from patchq.smoke import kept
from patchq.smoke.bench import Bench, Plan, contexts_of, labelled, measure
from patchq.smoke.client import Client
from patchq.smoke.compare import MARGINS
from patchq.smoke.load import Kind
from patchq.smoke.model import About

if TYPE_CHECKING:
    from patchq.cluster.profile import Profile

LIMIT = "max-model-len"
"""The profile's flag that says how much context it serves."""


@dataclass(frozen=True)
class Asked:
    """Sizes; empty `contexts`: as far as the servers go. `patience` in seconds."""

    contexts: tuple[int, ...] = ()
    concurrency: tuple[int, ...] = (1, 4)
    tokens: int = 128
    rounds: int = 3
    warmup: int = 1
    seed: int = 0
    patience: float = 600.0


def margins_of(profile: Profile | None) -> Mapping[Kind, float]:
    """The profile's margins. Raises PatchqError, naming the profile."""
    found = dict(MARGINS)
    for key, value in (profile.bench if profile else {}).items():
        where = f"ci/profiles/{profile.name}.toml, bench" if profile else ""
        kind = next((kind for kind in MARGINS if kind == key), None)
        if kind is None:
            raise PatchqError(f"{where}: unknown key {key}", f"known are {', '.join(MARGINS)}")
        if type(value) is not float or not 0.5 <= value < 1:
            raise PatchqError(
                f"{where}: {key} is no ratio from 0.5 to 1", "write 0.95 for 5 % slower at most"
            )
        found[kind] = value
    return found


def bench(
    urls: Sequence[str],
    labels: Sequence[str],
    asked: Asked,
    profile: Profile | None,
    *,
    cache: Path,
    progress: Progress = SILENT,
) -> Bench:
    """Measures all, in turns. Raises as `measure` does, and UsageError."""
    names = labelled(urls, labels)
    clients = [Client(url, patience=asked.patience) for url in urls]
    abouts = [client.about() for client in clients]
    plan = plan_of(abouts, asked, profile)
    return measure(
        list(zip(names, clients, strict=True)), abouts, plan, cache=cache, progress=progress
    )


def plan_of(abouts: Sequence[About], asked: Asked, profile: Profile | None) -> Plan:
    """As far as all servers and the profile go, where no contexts were asked for."""
    limit = profile.flags.get(LIMIT) if profile else None
    contexts = asked.contexts or contexts_of(
        abouts, asked.tokens, limit if isinstance(limit, int) else None
    )
    return Plan(
        tuple(sorted(set(contexts))),
        tuple(sorted(set(asked.concurrency))),
        asked.tokens,
        asked.rounds,
        asked.warmup,
        asked.seed,
    )


def gathered(
    a: str,
    b: str,
    asked: Asked,
    profile: Profile | None,
    *,
    cache: Path,
    progress: Progress = SILENT,
) -> tuple[list[tuple[Bench, int]], list[Bench]]:
    """Both sides, and what was measured for it: in turns, or one of them as the other once was."""
    if _is_url(a) and _is_url(b):
        both = bench([a, b], [], asked, profile, cache=cache, progress=progress)
        return [(both, 0), (both, 1)], [both]
    saved = {side: _saved(side) for side in (a, b) if not _is_url(side)}
    same = _like(next(iter(saved.values()))[0], asked.patience)
    made = []
    for side in (a, b):
        if side not in saved:
            made.append(bench([side], [], same, profile, cache=cache, progress=progress))
            saved[side] = made[-1], 0
    return [saved[a], saved[b]], made


def beside(side: str, patience: float) -> tuple[tuple[Bench, int], Asked]:
    """A saved bench that a cluster is held against, and what it was asked. Raises UsageError."""
    if _is_url(side):
        raise UsageError(
            "an address and a cluster are not measured in turns",
            "name a saved bench, or two addresses",
        )
    saved = _saved(side)
    return saved, _like(saved[0], patience)


def _like(saved: Bench, patience: float) -> Asked:
    """What the saved bench was asked."""
    plan = saved.plan
    sizes = plan.contexts, plan.concurrency
    return Asked(*sizes, plan.tokens, plan.rounds, plan.warmup, plan.seed, patience)


def _is_url(side: str) -> bool:
    return "://" in side


def _saved(side: str) -> tuple[Bench, int]:
    """A saved bench, and which of its sides is meant. Raises UsageError."""
    name, _, label = side.partition("#")
    found = kept.read(Path(name))
    labels = [each.label for each in found.sides]
    if not label and len(labels) == 1:
        return found, 0
    if label not in labels:
        raise UsageError(
            f"which side of {name}?", "name it: " + ", ".join(f"{name}#{each}" for each in labels)
        )
    return found, labels.index(label)
