"""What a night's stages left in its folder: JSON objects and logs, and a sync's report among them.

A folder may come from another machine (`patchq nightly --tell`): nothing in it is believed to have
the right form, and nothing is read without a limit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar, get_args

from patchq.carry.report import Check, PatchReport, Proof, SyncReport
from patchq.judge.model import (
    Action,
    CarryWord,
    Cause,
    Conflict,
    Finding,
    Says,
    Signal,
    VerdictWord,
)
from patchq.nightly.model import Stage
from patchq.upstream.releases import AsOf

LARGEST = 64 << 20
"""Bytes of a stage's result; a larger one is not read."""
TAIL = 256 << 10
"""Bytes of the end of a log that are looked at."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

T = TypeVar("T")


def result(folder: Path, name: str) -> dict[str, Any] | None:
    """The object in a file of the folder; None where there is none that can be read."""
    path = folder / name
    if not _NAME.fullmatch(name) or path.is_symlink():
        return None
    try:
        if path.stat().st_size > LARGEST:
            return None
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def results(folder: Path, stage: Stage) -> Iterator[dict[str, Any]]:
    """The objects that a stage's commands left, the one that decided first."""
    names = [each for each in stage.files if each.endswith(".json")]
    for name in dict.fromkeys([*names, f"{stage.name}.json"]):
        if (found := result(folder, name)) is not None:
            yield found


def log(folder: Path, stage: Stage) -> tuple[str, ...]:
    """The last lines of the stage's log, of the command that decided; none where there is none."""
    names = [each for each in stage.files if each.endswith(".log")]
    for name in dict.fromkeys([*names, f"{stage.name}.log"]):
        path = folder / name
        if not _NAME.fullmatch(name) or path.is_symlink():
            continue
        try:
            with path.open("rb") as opened:
                opened.seek(max(0, path.stat().st_size - TAIL))
                data = opened.read(TAIL)
        except OSError:
            continue
        # What a progress bar wrote over stands in one line.
        lines = data.decode("utf-8", "replace").replace("\r", "\n").split("\n")
        if found := tuple(line.rstrip() for line in lines if line.strip()):
            return found
    return ()


def sync(folder: Path) -> SyncReport | None:
    """The report of the night's sync as a value; None where there is none."""
    found = result(folder, "sync.json")
    return synced(found) if found and found.get("schema") == "patchq.sync/1" else None


def synced(value: Mapping[str, Any]) -> SyncReport:
    """A `patchq.sync/1` object as the report that it came from; what is odd is left out."""
    base, upstream = table(value, "base"), table(value, "upstream")
    try:
        when = datetime.fromisoformat(text(upstream, "as_of"))
    except ValueError:
        when = datetime.fromtimestamp(0, UTC)
    return SyncReport(
        queue=text(value, "queue"),
        base_from=text(base, "from"),
        base_to=text(base, "to"),
        tree=text(base, "tree"),
        changed=value.get("changed") is True,
        recorded=value.get("recorded") is True,
        upstream=AsOf(
            text(upstream, "source"),
            when,
            upstream.get("complete") is True,
            upstream.get("history") is True,
            texts(upstream, "notes"),
        ),
        patches=tuple(map(_patch, tables(value, "patches"))),
        proof=_proof(table(value, "proof")),
        notes=texts(value, "notes"),
    )


def _patch(value: Mapping[str, Any]) -> PatchReport:
    return PatchReport(
        number=number(value, "number"),
        name=text(value, "name"),
        subject=text(value, "subject"),
        file=text(value, "file") or None,
        verdict=_one(get_args(VerdictWord), value.get("verdict"), "uncertain"),
        carry=_one(get_args(CarryWord), value.get("carry"), None),
        action=_one(get_args(Action), value.get("action"), "ask"),
        evidence=tuple(
            Signal(
                text(each, "signal"),
                _one(get_args(Says), each.get("says"), "unclear"),
                text(each, "detail"),
                text(each, "ref"),
            )
            for each in tables(value, "evidence")
        ),
        conflicts=tuple(
            Conflict(
                text(each, "path").encode("utf-8", "surrogateescape"),
                text(each, "kind"),
                tuple(map(_cause, tables(each, "causes"))),
            )
            for each in tables(value, "conflicts")
        ),
        findings=tuple(
            Finding(
                text(each, "kind"),
                text(each, "path").encode("utf-8", "surrogateescape"),
                text(each, "says"),
                each.get("fatal") is True,
            )
            for each in tables(value, "findings")
        ),
        range_diff=text(value, "range_diff"),
        rewritten=value.get("rewritten") is True,
    )


def _cause(value: Mapping[str, Any]) -> Cause:
    return Cause(
        text(value, "commit"),
        text(value, "pr") or None,
        text(value, "title"),
        text(value, "author"),
        text(value, "date"),
    )


def _proof(value: Mapping[str, Any]) -> Proof:
    return Proof(
        tuple(
            Check(text(each, "name"), each.get("ok") is True, text(each, "detail"))
            for each in tables(value, "checks")
        )
    )


def _one(words: tuple[str, ...], value: object, otherwise: T) -> Any:
    return value if value in words else otherwise


# Parts of an object, whatever it is


def table(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def tables(value: Mapping[str, Any], key: str) -> tuple[Mapping[str, Any], ...]:
    found = value.get(key)
    return tuple(each for each in _list(found) if isinstance(each, dict))


def text(value: Mapping[str, Any], key: str) -> str:
    found = value.get(key)
    return found if isinstance(found, str) else ""


def texts(value: Mapping[str, Any], key: str) -> tuple[str, ...]:
    found = value.get(key)
    return tuple(each for each in _list(found) if isinstance(each, str))


def number(value: Mapping[str, Any], key: str) -> int:
    found = value.get(key)
    return found if type(found) is int else 0


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
