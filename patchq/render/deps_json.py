"""What the runner is made of as JSON objects (docs/json.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from patchq.paths import lossless
from patchq.render import jsons

if TYPE_CHECKING:
    from patchq.carry.deps.model import (
        CheckReport,
        ListReport,
        OutdatedReport,
        Retirement,
        UpdateReport,
    )
    from patchq.judge.model import Finding
    from patchq.judge.needs import Conflict, Solution
    from patchq.upstream.components import Hardware


def listed(report: ListReport) -> dict[str, Any]:
    return {
        "schema": "patchq.deps-list/1",
        "queue": report.queue,
        "base": report.base,
        "hardware": report.hardware and _hardware(report.hardware),
        "parts": [
            {
                "kind": each.kind,
                "name": each.name,
                "pin": each.pin,
                "origin": each.origin,
                "why": each.why,
                "sha256": each.sha256 or None,
                "patches": list(each.patches),
                "requires": list(each.requires),
                "detail": dict(each.detail),
            }
            for each in report.parts
        ],
    }


def checked(report: CheckReport) -> dict[str, Any]:
    return {
        "schema": "patchq.deps-check/1",
        "base": report.base,
        "hardware": _hardware(report.hardware),
        "ok": report.solution.ok,
        **_solution(report.solution),
        "versions": dict(sorted(report.solution.versions.items())),
        "would_fit": dict(report.would_fit),
        "source_only": list(report.source_only),
        "by_hand": list(report.by_hand),
        "missing": list(report.missing),
    }


def outdated(report: OutdatedReport) -> dict[str, Any]:
    return {
        "schema": "patchq.deps-outdated/1",
        "base": report.base,
        "parts": [
            {
                "kind": each.kind,
                "name": each.name,
                "pin": each.pin,
                "date": each.date or None,
                "newer": [{"version": v, "date": date or None} for v, date in each.newer],
                "breaks": [_conflict(c) for c in each.breaks.conflicts] if each.breaks else [],
                "brings": list(each.brings),
                "findings": None if each.findings is None else _findings(each.findings),
                "says": each.says or None,
            }
            for each in report.parts
        ],
        "retirements": [_retirement(each) for each in report.retirements],
        "missing": list(report.missing),
    }


def updated(report: UpdateReport) -> dict[str, Any]:
    return {
        "schema": "patchq.deps-update/1",
        "kind": report.kind,
        "name": report.name,
        "from": report.old,
        "to": report.new,
        "source": report.source,
        "sha256": report.sha256 or None,
        "changed": report.changed,
        "recorded": report.recorded,
        "dry_run": report.dry_run,
        "entry": report.entry,
        "files": list(report.files),
        "conflicts": [_conflict(c) for c in report.solution.conflicts] if report.solution else [],
        "relaxed": list(report.relaxed),
        "brings": list(report.brings),
        "findings": _findings(report.findings),
        "retirements": [_retirement(each) for each in report.retirements],
        "sync": report.sync and jsons.sync(report.sync),
        "proof": jsons.proof(report.proof),
        "missing": list(report.missing),
    }


def _hardware(hardware: Hardware) -> dict[str, Any]:
    return {
        "machine": hardware.machine,
        "python": hardware.python,
        "glibc": hardware.glibc,
        "cuda": hardware.cuda or None,
    }


def _solution(solution: Solution) -> dict[str, Any]:
    return {
        "conflicts": [_conflict(each) for each in solution.conflicts],
        "relaxed": [
            {
                "of": each.need.of,
                "requirement": each.need.text,
                "by": each.by,
                "needed": not each.holds,
            }
            for each in solution.waived
        ],
        "idle": [
            {"of": each.of, "requirement": each.requirement, "by": each.by}
            for each in solution.idle
        ],
    }


def _conflict(conflict: Conflict) -> dict[str, Any]:
    return {
        "package": conflict.package,
        "why": conflict.why or None,
        "needs": [
            {"of": need.of, "requirement": need.text, "pin": need.chosen} for need in conflict.needs
        ],
    }


def _retirement(each: Retirement) -> dict[str, Any]:
    check = each.check
    return {
        "queue": each.queue,
        "patch": each.patch,
        "rule": each.rule,
        "holds": each.holds,
        "by": each.by or None,
        "check": check and {"name": check.name, "ok": check.ok, "detail": check.detail},
    }


def _findings(found: tuple[Finding, ...]) -> list[dict[str, Any]]:
    return [
        {"kind": f.kind, "path": lossless(f.path), "says": f.says, "fatal": f.fatal} for f in found
    ]
