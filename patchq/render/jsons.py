"""Results as JSON objects, each with a schema and its version (docs/json.md)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from patchq.paths import lossless
from patchq.render import sessions_json

if TYPE_CHECKING:
    from patchq.carry.bring import ImportReport
    from patchq.carry.decide import DecideReport
    from patchq.carry.export import ExportReport, MboxReport
    from patchq.carry.inspect import CheckReport, HistoryReport, StatusReport
    from patchq.carry.report import PatchReport, Proof, SyncReport
    from patchq.carry.shelf import Entry
    from patchq.carry.start import InitReport
    from patchq.errors import PatchqError
    from patchq.judge.model import Conflict, Signal
    from patchq.queue.patch import Patch
    from patchq.queue.series import Series


def dump(value: dict[str, Any]) -> str:
    """One object, indented; bytes that are no UTF-8 stand as lone surrogates, escaped."""
    return json.dumps(value, indent=2, ensure_ascii=True)


def error(problem: PatchqError, log: str = "") -> dict[str, Any]:
    return {
        "schema": "patchq.error/1",
        "message": problem.message,
        "hint": problem.hint,
        "log": log or None,
    }


def sync(report: SyncReport) -> dict[str, Any]:
    return {
        "schema": "patchq.sync/1",
        "queue": report.queue,
        "base": {"from": report.base_from, "to": report.base_to, "tree": report.tree},
        "changed": report.changed,
        "recorded": report.recorded,
        "dry_run": report.dry_run,
        "entry": report.entry,
        "recovered": report.recovered,
        "session": report.session,
        "shown": report.shown or None,
        "notes": list(report.notes),
        "upstream": {
            "source": report.upstream.source,
            "as_of": report.upstream.when.isoformat(timespec="seconds"),
            "complete": report.upstream.complete,
            "history": report.upstream.history,
            "notes": list(report.upstream.notes),
        },
        "patches": [_patch_report(patch) for patch in report.patches],
        "proof": proof(report.proof),
    }


def _patch_report(patch: PatchReport) -> dict[str, Any]:
    clashes = {clash.path: clash for clash in patch.clashes}
    return {
        "number": patch.number,
        "name": patch.name,
        "subject": patch.subject,
        "file": patch.file,
        "verdict": patch.verdict,
        "carry": patch.carry,
        "action": patch.action,
        "rewritten": patch.rewritten,
        "evidence": [_signal(signal) for signal in patch.evidence],
        "conflicts": [
            {**_conflict(each), **sessions_json.sides(clashes.get(each.path))}
            for each in patch.conflicts
        ],
        "findings": [
            {"kind": f.kind, "path": lossless(f.path), "says": f.says, "fatal": f.fatal}
            for f in patch.findings
        ],
        "range_diff": patch.range_diff,
    }


def _signal(signal: Signal) -> dict[str, Any]:
    return {
        "signal": signal.signal,
        "says": signal.says,
        "detail": signal.detail,
        "ref": signal.ref or None,
    }


def _conflict(conflict: Conflict) -> dict[str, Any]:
    cause = conflict.cause
    return {
        "path": lossless(conflict.path),
        "kind": conflict.kind,
        "cause": cause and {"commit": cause.commit, "pr": cause.pr, "title": cause.title},
        "causes": [
            {
                "commit": each.commit,
                "pr": each.pr,
                "title": each.title,
                "author": each.author,
                "date": each.date,
            }
            for each in conflict.causes
        ],
    }


def proof(value: Proof) -> dict[str, Any]:
    return {
        "ok": value.ok,
        "checks": [{"name": c.name, "ok": c.ok, "detail": c.detail} for c in value.checks],
    }


def init(report: InitReport) -> dict[str, Any]:
    return {
        "schema": "patchq.init/1",
        "queue": report.queue,
        "file": report.file,
        "series": report.series,
        "base": {
            "release": report.base.name,
            "commit": report.base.commit,
            "tree": report.base.tree,
        },
        "entry": report.entry,
    }


def imported(report: ImportReport) -> dict[str, Any]:
    return {
        "schema": "patchq.import/1",
        "queue": report.queue,
        "tree": report.tree,
        "dry_run": report.dry_run,
        "entry": report.entry,
        "patches": [
            {**_patch(patch), "commits": list(of)}
            for patch, of in zip(report.patches, report.commits, strict=True)
        ],
        "left_out": [{"name": name, "field": field} for name, field in report.left_out],
        "proof": proof(report.proof),
    }


def exported(report: ExportReport) -> dict[str, Any]:
    return {
        "schema": "patchq.export/1",
        "queue": report.queue,
        "repository": report.repository,
        "branch": report.branch,
        "base": report.base,
        "commit": report.commit,
        "tree": report.tree,
        "patches": report.patches,
    }


def exported_mbox(report: MboxReport) -> dict[str, Any]:
    return {
        "schema": "patchq.export-mbox/1",
        "queue": report.queue,
        "file": report.file,
        "base": report.base,
        "patches": report.patches,
    }


def check(report: CheckReport) -> dict[str, Any]:
    return {
        "schema": "patchq.check/1",
        "queue": report.queue,
        "base": report.base,
        "tree": report.tree,
        "renumbered": [list(pair) for pair in report.renumbered],
        "proof": proof(report.proof),
    }


def status(report: StatusReport) -> dict[str, Any]:
    return {
        "schema": "patchq.status/1",
        "queue": report.queue,
        "source": report.source,
        "base": report.base,
        "tree": report.tree or None,
        "applied": report.applied,
        "held": [{"name": name, "why": why} for name, why in report.held],
        "retired": report.retired,
        "proved": report.proved,
        "recovered": report.recovered,
    }


def series(queue: str, value: Series) -> dict[str, Any]:
    held = value.held
    return {
        "schema": "patchq.series/1",
        "queue": queue,
        "patches": [{**_patch(patch), "held": held.get(patch.name)} for patch in value.all],
    }


def show(queue: str, patch: Patch, held: str | None) -> dict[str, Any]:
    return {
        "schema": "patchq.show/1",
        "queue": queue,
        **_patch(patch),
        "held": held,
        "header": [list(field) for field in patch.header.fields],
        "body": patch.header.body,
        "diff": lossless(patch.diff),
    }


def _patch(patch: Patch) -> dict[str, Any]:
    return {
        "number": patch.number,
        "name": patch.name,
        "file": patch.file,
        "subject": patch.header.subject,
    }


def history(report: HistoryReport) -> dict[str, Any]:
    return {
        "schema": "patchq.history/1",
        "queue": report.queue,
        "name": report.name or None,
        "events": [
            {
                "when": event.when.isoformat(timespec="seconds") if event.when else None,
                "entry": event.entry,
                "what": event.what,
                "detail": event.detail,
                "patch": lossless(event.text) if event.text else None,
            }
            for event in report.events
        ],
    }


def undone(entry: Entry, *, dry_run: bool) -> dict[str, Any]:
    return {
        "schema": "patchq.undo/1",
        "entry": None if dry_run else entry.id,
        "undoes": entry.undoes,
        "summary": entry.summary,
        "files": [change.path for change in entry.changes],
        "dry_run": dry_run,
    }


def decided(report: DecideReport) -> dict[str, Any]:
    return {
        "schema": "patchq.decide/1",
        "queue": report.queue,
        "name": report.name,
        "answer": report.answer,
        "why": report.why,
        "onto": report.onto,
        "evidence": report.evidence,
        "entry": report.entry,
        "sync": sync(report.sync) if report.sync else None,
    }


def tree(queue: str, value: str) -> dict[str, Any]:
    return {"schema": "patchq.tree/1", "queue": queue, "tree": value}
