"""`patchq init`: a new queue in the current repository."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from patchq.carry import journal
from patchq.carry.addgit import git_source
from patchq.config import NOT_QUEUES, Project, Source, load_queue, queue_names
from patchq.errors import PatchqError
from patchq.progress import SILENT, Progress
from patchq.queue.series import Series
from patchq.upstream import state as states
from patchq.upstream.releases import Release
from patchq.upstream.sources import open_source
from patchq.upstream.state import QueueState


@dataclass(frozen=True)
class InitReport:
    """The new queue: its settings file, its series folder and its base."""

    queue: str
    file: str
    series: str
    base: Release
    entry: int | None
    recovered: str | None = None


def init(
    project: Project,
    name: str,
    *,
    git: str | None = None,
    package: str | None = None,
    base: str,
    cwd: Path,
    progress: Progress = SILENT,
) -> InitReport:
    """Make the queue `name` on the release `base` of a git repository or a package.

    The caller holds the lock. Raises PatchqError for a name in use, an unknown release, or an
    upstream that is not reached.
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", name) or name in NOT_QUEUES:
        raise PatchqError(
            f"{name!r} cannot be a queue's name", "use lower-case letters, digits and dashes"
        )
    existing = queue_names(project)
    if name in existing:
        raise PatchqError(f"there is a queue {name!r} already", f"see upstream/{name}.toml")
    source = _source(git, package, cwd)
    used = {load_queue(project, each).series for each in existing}
    folder = "series" if "series" not in used else f"series/{name}"
    if (project.root / folder / "series").exists():
        raise PatchqError(
            f"{folder}/series exists already", "move it away, then `patchq import --quilt DIR`"
        )
    upstream = open_source(source, project.root, progress=progress)
    try:
        release = upstream.release(upstream.latest() if base == "latest" else base)
    finally:
        upstream.close()
    state = QueueState(release.name, release.commit, release.tree).on(
        release, Series().digest, release.tree
    )
    all_states = {**states.read(project.state_file), name: state}
    changes: dict[str, bytes | None] = {
        f"upstream/{name}.toml": _settings(name, folder, source),
        f"{folder}/series": b"",
        "upstream/state.json": states.format(all_states),
    }
    entry = journal.record(project, "init", f"queue {name} on {release.name}", changes)
    return InitReport(name, f"upstream/{name}.toml", folder, release, entry.id if entry else None)


def _source(git: str | None, package: str | None, cwd: Path) -> Source:
    if package is not None:
        return Source("index", package)
    assert git is not None
    return git_source(git, cwd)


def _settings(name: str, folder: str, source: Source) -> bytes:
    import tomlkit

    document = tomlkit.document()
    document.add(tomlkit.comment("What this queue patches, and where its releases come from."))
    document["name"] = name
    document["series"] = folder
    document["topics"] = tomlkit.array()
    sources = tomlkit.aot()
    table = tomlkit.table()
    table[source.kind] = source.value
    sources.append(table)
    document["sources"] = sources
    return tomlkit.dumps(document).encode()
