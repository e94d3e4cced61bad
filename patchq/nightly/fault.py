"""Why a night is not green: the first cause, the lines that show it, whose doing it is.

All of it is read from what the stages left in the night's folder. What comes out is meant for
everybody to read: tokens, addresses and accounts are taken out of it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args, get_type_hints

from patchq.nightly import reports, symptoms
from patchq.nightly.model import Culprit, Fault, Night, Stage, StageState
from patchq.nightly.reports import table, text
from patchq.paths import show
from patchq.release.redact import Cleaner

_DECIDE: Mapping[str, tuple[StageState, ...]] = {"red": ("failed", "late"), "asks": ("asks",)}
"""By how a night ended: the states of the stage that decided it, the worse ones first."""
_BAD: tuple[StageState, ...] = ("unreached", "late", "failed", "asks")
WIDE = 400
"""Characters of a line, the first."""
MOST = 12
"""Culprits that are named, at most."""

_KINDS = get_args(get_type_hints(Culprit)["kind"])
_URL = re.compile(r"https?://[!-~]{1,500}")


def find(
    night: Night, folder: Path, *, github: str | None = None, target: str = ""
) -> Fault | None:
    """Why the night is not green; None where no stage says so.

    What `bisect.json` in the folder found comes first of the culprits. `github`: OWNER/REPO of
    upstream, for links to its commits. `target`: what a build was asked for, where it says nothing.
    """
    stage = _stage(night)
    if stage is None:
        return None
    found = symptoms.of(stage, folder, github)
    culprits, again = _searched(reports.result(folder, "bisect.json") or {})
    cleaner = Cleaner({})

    def clean(line: str) -> str:
        return cleaner.clean(show(line))[:WIDE]

    return Fault(
        stage=stage.name,
        cause=clean(found.cause),
        lines=tuple(map(clean, found.lines[: symptoms.LINES])),
        reproduce=tuple(map(clean, (*_way(night, stage, folder, target), *found.shows, *again))),
        culprits=tuple(
            replace(each, name=show(each.name)[:WIDE], says=clean(each.says))
            for each in (*culprits, *found.culprits)[:MOST]
        ),
    )


def _stage(night: Night) -> Stage | None:
    """The first one of those that decided: before it another may have reached not all it wanted."""
    order = (*_DECIDE.get(night.state, ()), *_BAD)
    bad = [each for each in night.stages if each.state in order]
    return min(bad, key=lambda each: order.index(each.state), default=None)


# Whose doing it is, and how to see it again


def _searched(value: Mapping[str, Any]) -> tuple[tuple[Culprit, ...], tuple[str, ...]]:
    """What a bisection found, and its own way to show it."""
    found = table(value, "culprit")
    again = tuple(text(value, "reproduce").splitlines())
    if found.get("kind") not in _KINDS or not text(found, "name"):
        return (), again
    confidence, url = value.get("confidence"), text(found, "url")
    return (
        Culprit(
            cast(Any, found["kind"]),
            text(found, "name"),
            text(found, "says"),
            url if _URL.fullmatch(url) else None,
            float(confidence) if isinstance(confidence, int | float) else None,
        ),
    ), again


def _way(night: Night, stage: Stage, folder: Path, target: str) -> Iterator[str]:
    """The commands that lead to the stage, in a checkout of the project."""
    yield f"git checkout {shlex.quote(night.start[:12])}"
    if stage.name == "sync":
        return
    if night.commit and night.base:
        yield f"patchq sync --onto {shlex.quote(night.base[1])} --commit"
    yield "patchq lock"
    built, deployed, started = (
        reports.result(folder, f"{name}.json") or {} for name in ("build", "deploy", "start")
    )
    target = text(built, "target") or text(table(deployed, "labels"), "target") or target
    yield shlex.join(["patchq", "build", *(["--target", target] if target else [])])
    if stage.name == "build" or not (cluster := text(deployed, "cluster")):
        return
    yield shlex.join(["patchq", "cluster", "deploy", cluster])
    if stage.name != "deploy" and (profile := text(started, "profile")):
        yield shlex.join(["patchq", "cluster", "start", cluster, "--profile", profile])
