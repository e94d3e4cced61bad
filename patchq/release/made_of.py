"""What release N is, as its manifest says it: pure, of what was looked at."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from patchq.build import lockfacts
from patchq.build.lock import RunnerLock
from patchq.build.target import TARGETS, Target
from patchq.cluster.profile import Profile
from patchq.paths import show
from patchq.queue.patch import Patch
from patchq.release.manifest import Dropped, Figure, Manifest, ModelIs, PatchIs
from patchq.release.tables import PULL
from patchq.smoke.identity import Identity
from patchq.upstream.components import Pins

_LONGEST = 1000
_METRICS = ("decode", "ttft", "wall")


def line(text: str) -> str:
    """A stranger's text as one line of a manifest."""
    return show(" ".join(text.split()))[:_LONGEST]


def patches(series: Sequence[Patch], previous: Manifest | None) -> tuple[PatchIs, ...]:
    """The applied patches in their order, held against the previous release."""
    before = {each.name: each for each in previous.patches} if previous else {}
    return tuple(_patch(each, before.get(each.name)) for each in series)


def _patch(patch: Patch, was: PatchIs | None) -> PatchIs:
    digest, heads = lockfacts.content_id(patch), tuple(_pulls(patch))
    state = "carried" if was and (was.sha256, was.prs) == (digest, heads) else "refreshed"
    return PatchIs(
        patch.number,
        patch.name,
        digest,
        line(patch.header.subject),
        state if was else "new",
        heads,
        line(patch.header.get("Patchq-Topic")),
    )


def _pulls(patch: Patch) -> Iterator[str]:
    for value in patch.header.all("Patchq-Pr"):
        name, _, head = value.partition(" @ ")
        told = f"{name.strip()} @ {head.strip()}" if head.strip() else name.strip()
        if PULL.fullmatch(told):
            yield told


def dropped(
    series: Sequence[Patch], previous: Manifest | None, retired: Mapping[str, str]
) -> tuple[Dropped, ...]:
    """What the previous release had and this one has not; `retired`: why, by name."""
    names = {patch.name for patch in series}
    gone = [each for each in previous.patches if each.name not in names] if previous else []
    return tuple(
        Dropped(each.number, each.name, line(retired.get(each.name, "taken out of the series")))
        for each in gone
    )


def models(pins: Pins, profile: Profile) -> tuple[ModelIs, ...]:
    """The pins of what the profile serves."""
    found: list[ModelIs] = []
    for kind, wanted, entries in (
        ("model", profile.model, pins.models),
        ("draft", profile.draft, pins.drafts),
        ("template", profile.template, pins.templates),
    ):
        for each in entries:
            if each.name == wanted:
                file = getattr(each, "file", None)
                digest = each.sha256 or None
                found.append(ModelIs(kind, each.name, each.repository, each.revision, digest, file))
    return tuple(found)


def figures(bench: Mapping[str, Any] | None, tree: str) -> tuple[Figure, ...]:
    """Medians of a `patchq.bench/1`, of the side that is this runner; none where that is not told.

    Raises ValueError for what is malformed.
    """
    try:
        return tuple(_figures(bench, tree)) if bench else ()
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"the evidence of bench is malformed: {error!r}") from error


def _figures(bench: Mapping[str, Any], tree: str) -> Iterator[Figure]:
    sides = bench["sides"]
    ours = [n for n, side in enumerate(sides) if side.get("tree") == tree]
    if not ours and len(sides) == 1:
        ours = [0]
    cells: dict[tuple[str, int, int, bool], list[Mapping[str, Any]]] = {}
    for visit in bench["visits"]:
        if ours and visit["side"] == ours[0]:
            cell = visit["cell"]
            name = (str(cell["kind"]), int(cell["context"]), int(cell["concurrency"]))
            cells.setdefault((*name, bool(cell["warm"])), []).extend(visit["taken"])
    for key, taken in sorted(cells.items()):
        found = {
            metric: round(float(statistics.median(values)), 4)
            for metric in _METRICS
            if (values := [each[metric] for each in taken if each.get(metric) is not None])
        }
        if found:
            yield Figure(*key, *map(found.get, _METRICS))


def limits(
    target: Target,
    record: Mapping[str, Any],
    profile: Profile,
    identity: Identity,
    by_hand: str,
) -> tuple[str, ...]:
    """What whoever installs it has to know, a sentence each; `by_hand`: releases/limits.md."""
    count = len(identity.nodes)
    found = [
        (
            f"Built and tested for {target.name} only: {target.machine}, Python {target.python},"
            f" glibc {target.glibc} or newer, {count} machine{'s' if count != 1 else ''}."
        )
    ]
    if most := profile.flags.get("max-model-len"):
        found.append(f"It answers up to {most} tokens, prompt and answer together.")
    drafts = profile.speculation.get("num_speculative_tokens")
    if drafts and profile.draft:
        found.append(f"Drafts are {drafts} tokens long; the drafter was not tested with others.")
    found += [
        f"{each['name']} has no wheel for {target.name}: it is built there from its source."
        for each in record["components"]
        if each["kind"] in ("source", "commit")
    ]
    found += re.findall(r"^[-*] +(\S.*)$", by_hand, re.MULTILINE)
    return tuple(line(each) for each in found)


def targets_of(held: Mapping[str, bytes]) -> list[Target]:
    return [TARGETS[name] for name in TARGETS if name in held]


def facts(lock: RunnerLock) -> dict[str, str]:
    return dict(lock.facts)
