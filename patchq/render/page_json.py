"""Where a queue stands, as JSON (docs/json.md)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from patchq.nightly import form

if TYPE_CHECKING:
    from patchq.nightly.page import Page

_DECISION = ("answer", "why")


def as_json(page: Page, written: Mapping[str, int] | None = None) -> dict[str, Any]:
    """docs/json.md: patchq.report/1. `written`: sizes of the files, by their paths."""
    last_asked = page.drift.as_of
    counts = page.downloads.counts
    return {
        "schema": "patchq.report/1",
        "queue": page.queue,
        "source": page.source,
        "as_of": page.now.isoformat(timespec="seconds"),
        "base": page.base,
        "tree": page.tree or None,
        "patches": [
            {
                **dataclasses.asdict(each),
                "pulls": [{"pr": key, "role": role} for key, role in each.pulls],
            }
            for each in page.patches
        ],
        "pulls": [
            {
                **dataclasses.asdict(each),
                "patches": [{"name": name, "role": role} for name, role in each.patches],
                "decision": each.decision and dict(zip(_DECISION, each.decision, strict=True)),
                "head": each.head or None,
            }
            for each in page.pulls
        ],
        "moved_since": page.moved_since,
        "releases": [dataclasses.asdict(each) for each in page.releases],
        "nights": [form.value(each) for each in page.nights],
        "last": {"hours": page.hours, "late": page.late, "stale_hours": page.stale_hours},
        "drift": {
            **dataclasses.asdict(page.drift),
            "date": page.drift.date or None,
            "days": page.base_days,
            "commits": [{"to": name, "commits": count} for name, count in page.drift.commits],
            "as_of": last_asked.isoformat(timespec="seconds") if last_asked else None,
        },
        "downloads": {
            "total": None if page.downloads.missing else sum(counts.values()),
            "as_of": page.downloads.as_of,
            "missing": page.downloads.missing or None,
        },
        "notes": list(page.notes),
        "files": [{"path": path, "bytes": size} for path, size in (written or {}).items()],
    }
