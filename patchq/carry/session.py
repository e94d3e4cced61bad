"""A sync that waits for answers, on disk: `.git/patchq/sessions/QUEUE/`.

`session.json` holds what was asked for and said so far, `tree` shows one patch's conflict (`git`
is that tree's repository). Everything else is worked out anew each time: the session holds no state
of the merge. Edits that a change of the series overtook go to `.git/patchq/kept/QUEUE/`, and stay.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from patchq.carry import exchange, resolutions, shelf
from patchq.carry.answers import Decision, Said
from patchq.carry.exchange import explained
from patchq.config import Project, load_queue
from patchq.errors import PatchqError

SCHEMA = "patchq.session/1"


@dataclass(frozen=True)
class Shown:
    """The patch that the working tree shows, the tree written there for it, the commit before."""

    patch: str
    tree: str
    head: str


@dataclass(frozen=True)
class Switch:
    """A switch of the working tree that is under way."""

    old: str
    new: str
    head: str


@dataclass(frozen=True)
class Session:
    """An open session: the release aimed at, the series it began with (its digest), the answers.

    `onto`, `commit` and `tree` pin the release, whatever upstream does meanwhile.
    """

    queue: str
    root: str
    since: str
    base: str
    onto: str
    commit: str
    tree: str
    series: str
    said: Said = field(default_factory=Said)
    shown: Shown | None = None
    switch: Switch | None = None


def folder_of(project: Project, queue: str) -> Path:
    return project.private / "sessions" / queue


def tree_of(project: Project, queue: str) -> Path:
    return folder_of(project, queue) / "tree"


def find(project: Project, queue: str) -> Session | None:
    """The open session of a queue, if there is one; costs one stat where there is none.

    Raises PatchqError where it is damaged or of another working tree of the repository.
    """
    folder = folder_of(project, queue)
    if not folder.exists():
        return None
    try:
        session = _parse(json.loads((folder / "session.json").read_bytes()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise PatchqError(
            f"the session of {queue} in {folder} is damaged: {error}",
            "`patchq sync --abort` removes it; the queue is as it was before",
        ) from error
    if session.root != shelf.root_name(project):
        raise PatchqError(
            f"a session of {queue} is open in {project.git_dir / session.root}",
            "go on there; worktrees of one repository share their sessions",
        )
    return session


@dataclass(frozen=True)
class Glance:
    """An open session as `patchq status` tells of it; `damaged` says why it tells little."""

    tree: str
    onto: str = ""
    shown: str = ""
    damaged: str = ""


def glance(project: Project, queue: str) -> Glance | None:
    tree = str(tree_of(project, queue))
    try:
        session = find(project, queue)
    except PatchqError as error:
        return Glance(tree, damaged=f"{error.message}; {error.hint}")
    if session is None:
        return None
    return Glance(tree, session.onto, session.shown.patch if session.shown else "")


def needed(project: Project, queue: str) -> Session:
    """The open session. Raises PatchqError where there is none."""
    session = find(project, queue)
    if session is None:
        raise PatchqError(
            f"no session of {queue} is open", "`patchq sync` opens one where something conflicts"
        )
    return session


def open_names(project: Project) -> list[str]:
    """The queues that have a session, sorted; damaged ones included."""
    folder = project.private / "sessions"
    with suppress(OSError):
        return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    return []


def save(project: Project, session: Session) -> None:
    """Write the session down, all at once; the first time this opens it."""
    folder = folder_of(project, session.queue)
    data = json.dumps(_plain(session), indent=1).encode("ascii")
    with explained("the session is as it was before"):
        new = not folder.exists()
        place = folder.with_name(f".new-{session.queue}") if new else folder
        if new:
            exchange.remove_tree(place)
            place.mkdir(parents=True)
        beside = place / "session.json.new"
        exchange.remove_file(beside)
        exchange.write_new(beside, data)
        exchange.sync([beside])
        beside.replace(place / "session.json")
        exchange.sync([place])
        if new:
            place.rename(folder)
            exchange.sync([folder.parent])


def remove(project: Project, queue: str) -> bool:
    """Remove the session with its tree, whatever became of it; whether there was one.

    The folder is renamed first: from then on the session is closed.
    """
    folder = folder_of(project, queue)
    gone = folder.with_name(f".gone-{queue}")
    with explained("run `patchq sync --abort` again then"):
        exchange.remove_tree(gone)
        exchange.remove_tree(folder.with_name(f".new-{queue}"))
        there = folder.is_symlink() or folder.exists()
        if there:
            folder.rename(gone)
            exchange.sync([folder.parent])
        if gone.is_dir() and not gone.is_symlink():
            exchange.remove_tree(gone)
        else:
            exchange.remove_file(gone)
        with suppress(OSError):
            folder.parent.rmdir()
    return there


def abort(project: Project, queue: str | None) -> str:
    """Remove the session of `queue` (None: of the main one, or the only session); its name.

    Raises PatchqError where there is none. Needs neither upstream nor a sound session.
    """
    names = open_names(project)
    name = queue
    if name is None:
        with suppress(PatchqError):
            name = load_queue(project).name
        if name not in names and len(names) == 1:
            name = names[0]
    if name is None or name not in names:
        raise PatchqError(
            f"no session of {name or 'any queue'} is open",
            f"there is one of {', '.join(names)}: name it with --queue"
            if names
            else "`patchq sync` opens one where something conflicts",
        )
    remove(project, name)
    return name


def _plain(session: Session) -> dict[str, Any]:
    said = session.said
    return {
        "schema": SCHEMA,
        "queue": session.queue,
        "root": session.root,
        "since": session.since,
        "base": session.base,
        "onto": {"release": session.onto, "commit": session.commit, "tree": session.tree},
        "series": session.series,
        "decisions": {name: asdict(each) for name, each in sorted(said.decisions.items())},
        "held": dict(sorted(said.held.items())),
        "resolutions": {
            each.file: each.text.decode("utf-8", "surrogateescape") for each in said.fresh
        },
        "shown": session.shown and asdict(session.shown),
        "switch": session.switch and asdict(session.switch),
    }


def _parse(data: dict[str, Any]) -> Session:
    if data["schema"] != SCHEMA:
        raise ValueError(f"its schema is {data['schema']}")
    onto, shown, switch = data["onto"], data["shown"], data["switch"]
    said = Said(
        {name: Decision(**each) for name, each in data["decisions"].items()},
        dict(data["held"]),
        tuple(
            resolutions.parse(file, text.encode("utf-8", "surrogateescape"))
            for file, text in data["resolutions"].items()
        ),
    )
    return Session(
        data["queue"],
        data["root"],
        data["since"],
        data["base"],
        onto["release"],
        onto["commit"],
        onto["tree"],
        data["series"],
        said,
        Shown(**shown) if shown else None,
        Switch(**switch) if switch else None,
    )
