"""Commit what a command recorded: only where the user asked for it (`--commit`)."""

from __future__ import annotations

from patchq.carry.report import SyncReport
from patchq.config import Project
from patchq.gitstore.project import commit


def commit_sync(project: Project, report: SyncReport, text: str) -> str:
    """Commit series/ and upstream/ with the report as the message's body; the commit's id."""
    title = f"sync {report.queue} from {report.base_from} to {report.base_to}"
    body = text.partition("\n")[2].lstrip("\n")
    return commit(project.root, ["series", "upstream"], f"{title}\n\n{body}")
