"""Results about pull requests as JSON objects (docs/json.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from patchq.paths import lossless
from patchq.render.jsons import _conflict, _patch, _signal, proof

if TYPE_CHECKING:
    from patchq.carry.pulls.book import Entry
    from patchq.carry.pulls.model import (
        AddReport,
        Asked,
        Candidate,
        FindReport,
        LeftReport,
        ListReport,
        Moved,
        RefreshReport,
        Stop,
    )


def added(report: AddReport) -> dict[str, Any]:
    return {
        "schema": "patchq.pr-add/1",
        "queue": report.queue,
        "pull": entry(report.entry),
        "tracked": report.tracked,
        "patches": [_patch(patch) for patch in report.patches],
        "left_out": [lossless(path) for path in report.left_out],
        "there": list(report.there),
        "stops": [_stop(each) for each in report.stops],
        "notes": list(report.notes),
        "tree": report.tree or None,
        "proof": proof(report.proof),
        "asked": _asked(report.asked),
        "entry": report.journal,
        "dry_run": report.dry_run,
    }


def listed(report: ListReport) -> dict[str, Any]:
    return {
        "schema": "patchq.pr-list/1",
        "queue": report.queue,
        "pulls": [entry(each) for each in report.entries],
        "asked": _asked(report.asked),
    }


def shown(report: ListReport) -> dict[str, Any]:
    (only,) = report.entries
    return {
        "schema": "patchq.pr-show/1",
        "queue": report.queue,
        "pull": entry(only),
        "asked": _asked(report.asked),
    }


def refreshed(report: RefreshReport) -> dict[str, Any]:
    return {
        "schema": "patchq.pr-refresh/1",
        "queue": report.queue,
        "pulls": [_moved(each) for each in report.moved],
        "patches": [_patch(patch) for patch in report.patches],
        "dropped": list(report.dropped),
        "own_edits": list(report.own_edits),
        "stops": [_stop(each) for each in report.stops],
        "tree": report.tree or None,
        "proof": proof(report.proof),
        "asked": _asked(report.asked),
        "entry": report.journal,
        "dry_run": report.dry_run,
    }


def found(report: FindReport) -> dict[str, Any]:
    return {
        "schema": "patchq.pr-find/1",
        "queue": report.queue,
        "terms": list(report.terms),
        "pulls": [_candidate(each) for each in report.candidates],
        "left_out": dict(report.left_out),
        "notes": list(report.notes),
        "asked": _asked(report.asked),
    }


def left(report: LeftReport) -> dict[str, Any]:
    return {
        "schema": "patchq.pr-left/1",
        "queue": report.queue,
        "pr": report.key,
        "done": report.done,
        "why": report.why,
        "notes": list(report.notes),
        "entry": report.journal,
    }


def entry(value: Entry) -> dict[str, Any]:
    pull = value.pull
    facts = None
    if pull is not None:
        facts = {
            "title": pull.title,
            "author": pull.author,
            "state": pull.state,
            "draft": pull.draft,
            "base": pull.base,
            "head": pull.head_sha or None,
            "merged_as": pull.merge_sha,
            "created_at": pull.created_at,
            "updated_at": pull.updated_at,
            "merged_at": pull.merged_at,
            "closed_at": pull.closed_at,
            "closed_by": pull.closed_by,
            "labels": list(pull.labels),
            "replaced_by": list(pull.replaced_by),
            "reverted_by": list(pull.reverted_by),
            "means": pull.means,
            "first_seen": dict(pull.first_seen),
        }
    said = value.decision
    return {
        "pr": value.key,
        "why": value.why,
        "pinned": value.pin or None,
        "head_is": value.stand or None,
        "patches": [
            {"name": use.patch, "file": use.file, "role": use.role, "pin": use.pin or None}
            for use in value.uses
        ],
        "seen": facts,
        "decision": said and {"answer": said.answer, "why": said.why, "evidence": said.evidence},
    }


def _moved(value: Moved) -> dict[str, Any]:
    return {
        **entry(value.entry),
        "news": list(value.news),
        "range_diff": value.range_diff,
        "note": value.why or None,
        "done": value.done or None,
    }


def _candidate(value: Candidate) -> dict[str, Any]:
    return {
        "pr": value.key,
        "title": value.title,
        "state": value.state,
        "author": value.author,
        "updated_at": value.updated_at or None,
        "score": value.score,
        "reasons": [{"weight": each.weight, "says": each.says} for each in value.reasons],
    }


def _stop(value: Stop) -> dict[str, Any]:
    return {
        "patch": value.patch,
        "conflicts": [_conflict(each) for each in value.conflicts],
        "evidence": [_signal(each) for each in value.evidence],
    }


def _asked(value: Asked) -> dict[str, Any]:
    return {
        "means": value.means or None,
        "as_of": value.as_of.isoformat(timespec="seconds"),
        "missing": list(value.missing),
        "offline": value.offline,
    }
