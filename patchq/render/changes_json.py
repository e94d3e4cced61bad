"""What became of the series, as JSON objects (docs/json.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from patchq.paths import lossless
from patchq.render.jsons import proof

if TYPE_CHECKING:
    from patchq.carry.arrange import ChangeReport


def changed(report: ChangeReport) -> dict[str, Any]:
    return {
        "schema": f"patchq.{report.command}/1",
        "queue": report.queue,
        "name": report.name,
        "summary": report.summary,
        "tree": report.tree,
        "recorded": report.entry is not None,
        "dry_run": report.dry_run,
        "entry": report.entry,
        "conflicts": [
            {
                "patch": clash.patch,
                "path": lossless(clash.path) if clash.path else None,
                "why": clash.why,
                "with": list(clash.others),
            }
            for clash in report.clashes
        ],
        "rewritten": list(report.rewritten),
        "files": list(report.written),
        "proof": proof(report.proof),
    }
