"""A bench as a file: `patchq.bench/1` (docs/json.md), written by `patchq bench --out`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from patchq.errors import PatchqError
from patchq.smoke import identity
from patchq.smoke.bench import Bench, Plan, Side, Visit
from patchq.smoke.forms import number, text
from patchq.smoke.load import METRICS, Cell, Taken
from patchq.smoke.model import About

SCHEMA = "patchq.bench/1"
_LARGEST = 256 << 20
_KINDS = ("prose", "structured")

T = TypeVar("T")


def as_json(bench: Bench) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "ok": bench.exit_code == 0,
        "runner": identity.maybe_json(bench.runner),
        "run": bench.run,
        "stopped": bench.stopped,
        "interrupted": bench.interrupted,
        "broken": bench.broken,
        "plan": asdict(bench.plan),
        "sides": [described(side) for side in bench.sides],
        "visits": [asdict(visit) for visit in bench.visits],
    }


def described(side: Side) -> dict[str, Any]:
    """What binds the figures to what was measured, as JSON."""
    return {
        "label": side.label,
        "url": side.about.url,
        "model": side.about.model,
        "context": side.about.context,
        "version": side.about.version,
        "tree": side.tree,
        "template_sha256": side.template,
        "draft_tokens": side.draft_tokens,
        "acceptance": side.acceptance,
    }


def read(path: Path) -> Bench:
    """What `as_json` made. Raises PatchqError, naming the file, for anything else."""
    try:
        if path.stat().st_size > _LARGEST:
            raise PatchqError(f"{path} is larger than {_LARGEST >> 20} MB", "name a saved bench")
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise PatchqError(
            f"{path} cannot be read: {error.strerror}", "name an address or a saved bench"
        ) from None
    except (ValueError, RecursionError):
        raise PatchqError(f"{path} is no JSON", "name a file of `patchq bench --out`") from None
    try:
        if data["schema"] != SCHEMA:
            raise ValueError
        sides = tuple(map(_side, data["sides"]))
        plan = data["plan"]
        bench = Bench(
            run=text(data["run"]),
            plan=Plan(
                tuple(map(_whole, plan["contexts"])),
                tuple(map(_whole, plan["concurrency"])),
                *(_whole(plan[key]) for key in ("tokens", "rounds", "warmup", "seed")),
            ),
            sides=sides,
            visits=tuple(_visit(each, len(sides)) for each in data["visits"]),
            stopped=_maybe(text, data["stopped"]),
            interrupted=bool(data["interrupted"]),
            runner=_maybe(identity.read, data.get("runner")),
        )
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError):
        raise PatchqError(
            f"{path} is no bench of this patchq ({SCHEMA})", "write one by `patchq bench --out`"
        ) from None
    if not sides:
        raise PatchqError(f"{path} holds no side", "measure again")
    return bench


def _side(entry: Mapping[str, Any]) -> Side:
    version = entry["version"]
    about = About(
        text(entry["url"]),
        text(entry["model"]),
        _maybe(_whole, entry["context"]),
        dict(version) if version is not None else None,
    )
    drafting = (_maybe(number, entry[key]) for key in ("draft_tokens", "acceptance"))
    return Side(text(entry["label"]), about, *drafting)


def _visit(entry: Mapping[str, Any], sides: int) -> Visit:
    cell, side = entry["cell"], _whole(entry["side"])
    if cell["kind"] not in _KINDS or side >= sides:
        raise ValueError
    return Visit(
        side,
        _whole(entry["round"]),
        _whole(entry["turn"]),
        Cell(
            cell["kind"], _whole(cell["context"]), _whole(cell["concurrency"]), bool(cell["warm"])
        ),
        tuple(map(_taken, entry["taken"])),
    )


def _taken(entry: Mapping[str, Any]) -> Taken:
    decode, ttft, wall = (_maybe(number, entry[key]) for key in METRICS)
    prompt, completion, cached = (
        _maybe(_whole, entry[key])
        for key in ("prompt_tokens", "completion_tokens", "cached_tokens")
    )
    began, broke = number(entry["began"]), _maybe(text, entry["broke"])
    return Taken(began, decode, ttft, wall, prompt, completion, cached, broke)


def _maybe(form: Callable[[Any], T], value: Any) -> T | None:
    return None if value is None else form(value)


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 53:
        raise ValueError
    return value
