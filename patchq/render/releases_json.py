"""What the commands of `patchq release` found, as JSON (docs/json.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from patchq.release import manifest as manifests
from patchq.release import tables

if TYPE_CHECKING:
    from patchq.release.bundle import Check
    from patchq.release.cut import CutReport
    from patchq.release.history import Listed, ReleaseDiff
    from patchq.release.manifest import Manifest
    from patchq.release.verify import VerifyReport


def checks(found: Iterable[Check]) -> list[dict[str, Any]]:
    return [vars(each) for each in found]


def release(found: Manifest) -> dict[str, Any]:
    """A manifest, as its file has it."""
    return {"schema": manifests.SCHEMA, **tables.to_table(found)}


def cut(report: CutReport) -> dict[str, Any]:
    return {
        "schema": "patchq.release-cut/1",
        "number": report.number,
        "previous": report.previous,
        "tag": report.tag,
        "dry_run": report.dry_run,
        "ok": report.exit_code == 0,
        "checks": checks(report.checks),
        "release": release(report.manifest) if report.manifest else None,
        "folder": str(report.folder) if report.folder else None,
        "commit": report.commit,
        "entry": report.entry,
    }


def verified(report: VerifyReport) -> dict[str, Any]:
    return {
        "schema": "patchq.release-verify/1",
        "what": report.what,
        "number": report.number,
        "ok": report.ok,
        "checks": checks(report.checks),
    }


def listed(found: Sequence[Listed]) -> dict[str, Any]:
    return {
        "schema": "patchq.release-list/1",
        "releases": [
            {
                "number": each.manifest.number,
                "date": each.manifest.date,
                "base": each.manifest.base.release,
                "tree": each.manifest.tree,
                "lock": each.manifest.lock,
                "patches": len(each.manifest.patches),
                "previous": each.manifest.previous,
                "tag": each.tag,
                "bundle": each.here,
                "withdrawn": each.withdrawn,
            }
            for each in found
        ],
    }


def shown(found: Listed) -> dict[str, Any]:
    return {
        "schema": "patchq.release-show/1",
        "tag": found.tag,
        "bundle": found.here,
        "withdrawn": found.withdrawn,
        "release": release(found.manifest),
    }


def compared(found: ReleaseDiff) -> dict[str, Any]:
    old, new = found.base
    return {
        "schema": "patchq.release-diff/1",
        "a": found.a,
        "b": found.b,
        "base": {"a": asdict(old), "b": asdict(new)},
        "carried": found.carried,
        "patches": [asdict(each) for each in found.patches],
        "dependencies": [vars(each) for each in found.dependencies],
        "bench": [{"a": a and asdict(a), "b": b and asdict(b)} for a, b in found.bench],
        "notes": list(found.notes),
    }
