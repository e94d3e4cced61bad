"""`patchq upstream add-git`: a history for a queue that takes its releases from archives."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from patchq.carry import journal
from patchq.carry.workspace import Queue
from patchq.config import Source
from patchq.errors import PatchqError
from patchq.progress import SILENT, Progress
from patchq.upstream.history import local_git_dir
from patchq.upstream.sources import open_history

_PASSWORD = re.compile(r"[a-z][a-z0-9+.-]*://[^/@]*:[^/@]*@", re.IGNORECASE)


@dataclass(frozen=True)
class AddGitReport:
    """The source that was added, and the commit of each release in it (None: it has none)."""

    queue: str
    file: str
    url: str
    releases: tuple[tuple[str, str | None], ...]
    entry: int | None


def add_git(queue: Queue, url: str, cwd: Path, *, progress: Progress = SILENT) -> AddGitReport:
    """Add the git repository at `url` as a further source, once it is seen to have the base.

    A release is in it where a tag of its name has the very files. The caller holds the lock. Raises
    PatchqError for what is no repository, for another project's, and where there is a git source.
    """
    file = f"upstream/{queue.config.name}.toml"
    known = next((each for each in queue.config.sources if each.kind == "git"), None)
    if known is not None:
        raise PatchqError(
            f"{queue.config.name} has a git source already: {known.value}",
            f"edit [[sources]] in {file} to have another one",
        )
    if _PASSWORD.match(url):
        raise PatchqError(
            f"the address holds a password, and {file} is committed",
            "give it without, and the password to git's credential helper",
        )
    source = git_source(url, cwd)
    state = queue.state
    trees = {name: facts.get("tree", "") for name, facts in state.releases.items()}
    trees[state.release] = state.tree
    history = open_history(source, queue.project.root, progress=progress)
    try:
        found = tuple((name, history.commit_of(name, tree)) for name, tree in trees.items())
    finally:
        history.close()
    if dict(found)[state.release] is None:
        raise PatchqError(
            f"{source.value} has no tag with the files of {state.release}, on which"
            f" {queue.config.name} stands",
            "give the repository that the releases are made from, with its tags",
        )
    data = (queue.project.root / file).read_text(encoding="utf-8")
    entry = journal.record(
        queue.project,
        "upstream add-git",
        f"{queue.config.name} has its history from {source.value}",
        {file: _with_source(data, source)},
    )
    return AddGitReport(queue.config.name, file, source.value, found, entry.id if entry else None)


def git_source(url: str, cwd: Path) -> Source:
    """A git source as it is written down: a path that exists counts from `cwd`.

    Raises PatchqError for a path that is no repository.
    """
    local = local_git_dir(url if not (cwd / url).exists() else str(cwd / url))
    return Source("git", url if local is None else str((cwd / url).resolve()))


def _with_source(text: str, source: Source) -> bytes:
    """The settings with one source more; comments and order stay."""
    import tomlkit
    from tomlkit.items import AoT

    document = tomlkit.parse(text)
    sources = document["sources"]
    table = tomlkit.table() if isinstance(sources, AoT) else tomlkit.inline_table()
    table["git"] = source.value
    sources.append(table)
    return tomlkit.dumps(document).encode()
