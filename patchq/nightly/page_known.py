"""What nights left that a page shows: verdicts of their syncs, counts of downloads.

The files are results of patchq's own commands (docs/json.md). They may be damaged, or of another
version: what cannot be read is named and left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from patchq.judge.model import VerdictWord
from patchq.nightly.model import Night

SYNC = "sync.json"
DOWNLOADS = "downloads.json"
MOST = 8
"""Signals of a verdict that are kept."""


@dataclass(frozen=True)
class Said:
    """One signal of a verdict: what it is called, and what it says; `ref` may be empty."""

    signal: str
    detail: str
    ref: str = ""


@dataclass(frozen=True)
class Verdict:
    """What the last sync thought of a patch, and what it did with it (docs/sync.md).

    `night`: the one whose report says so; `onto`: the release in question. `evidence` may be an
    earlier night's, where the last one had nothing new to judge.
    """

    word: VerdictWord
    action: str
    carry: str
    onto: str
    night: str
    evidence: tuple[Said, ...] = ()
    conflicts: int = 0


def verdicts(folder: Path, nights: Sequence[Night], notes: list[str]) -> dict[str, Verdict]:
    """The last verdict on each patch, by its name. `nights`: the newest first."""
    found: dict[str, Verdict] = {}
    for night in nights:
        try:
            value = _read(folder / night.name / SYNC, "patchq.sync/1")
            told = list(_verdicts(value, night.name)) if value else []
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            notes.append(f"the sync's report of the night {night.name} cannot be read")
            continue
        for name, each in told:
            have = found.setdefault(name, each)
            if have.word == each.word and each.evidence and not have.evidence:
                found[name] = Verdict(**{**vars(have), "evidence": each.evidence})
    return found


def _verdicts(value: Mapping[str, Any], night: str) -> Iterator[tuple[str, Verdict]]:
    onto = _text(value["base"]["to"])
    for each in value["patches"]:
        word = each["verdict"]
        if word not in get_args(VerdictWord):
            raise ValueError(f"{word!r} is no verdict")
        said = tuple(
            Said(_text(one["signal"]), _text(one["detail"]), _text(one.get("ref") or ""))
            for one in each["evidence"][:MOST]
        )
        yield (
            _text(each["name"]),
            Verdict(
                word,
                _text(each["action"]),
                _text(each["carry"] or ""),
                onto,
                night,
                said,
                len(each["conflicts"]),
            ),
        )


def downloads(folder: Path, nights: Sequence[Night]) -> Mapping[str, Any] | None:
    """The newest `patchq release stats --json` that a night kept, or None."""
    for night in nights:
        try:
            found = _read(folder / night.name / DOWNLOADS, "patchq.release-stats/1")
            if found is not None and list(counted(found)):
                return found
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            continue
    return None


def counted(value: Mapping[str, Any]) -> Iterator[tuple[int, int, str]]:
    """Number, downloads and page of each release of such a file.

    Raises KeyError, TypeError or ValueError for what is none.
    """
    for each in value["releases"]:
        yield int(each["number"]), int(each["downloads"]), _text(each["page"] or "")


def moment(text: str) -> datetime | None:
    """An ISO date or moment (UTC where it names no zone); None for anything else."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _read(path: Path, schema: str) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_bytes())
    except OSError:
        return None
    if not isinstance(value, dict):
        raise ValueError("it is no object")
    if value.get("schema") == "patchq.error/1":
        return None
    if value.get("schema") != schema:
        raise ValueError(f"it is no {schema}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.50} is no text")
    return value
