"""Sessions as JSON: the sides of a conflict, and the end of a session (docs/json.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from patchq.paths import lossless

if TYPE_CHECKING:
    from patchq.carry.addgit import AddGitReport
    from patchq.carry.clash import Clash
    from patchq.carry.merge import Blob
    from patchq.carry.session import Glance


def sides(clash: Clash | None) -> dict[str, Any]:
    """What met in a conflict: the versions (mode and blob id), and each place in the text."""
    if clash is None:
        return {"new_path": None, "versions": None, "sides": []}
    return {
        "new_path": lossless(clash.new_path),
        "versions": {
            "base": _version(clash.base),
            "ours": _version(clash.ours),
            "theirs": _version(clash.theirs),
        },
        "sides": [
            {
                "line": side.line,
                "ours": lossless(side.ours),
                "base": lossless(side.base),
                "theirs": lossless(side.theirs),
            }
            for side in clash.sides
        ],
    }


def _version(blob: Blob | None) -> str | None:
    return f"{blob.mode} {blob.oid}" if blob is not None else None


def glance(session: Glance | None) -> dict[str, Any] | None:
    if session is None:
        return None
    return {
        "tree": session.tree,
        "onto": session.onto or None,
        "shown": session.shown or None,
        "damaged": session.damaged or None,
    }


def aborted(queue: str) -> dict[str, Any]:
    return {"schema": "patchq.session-abort/1", "queue": queue, "session": None}


def added_git(report: AddGitReport) -> dict[str, Any]:
    return {
        "schema": "patchq.upstream-add-git/1",
        "queue": report.queue,
        "file": report.file,
        "git": report.url,
        "releases": [{"release": release, "commit": commit} for release, commit in report.releases],
        "entry": report.entry,
    }
