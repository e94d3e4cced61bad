"""Open a bisection: one that goes on, or a new one over what moved between two runners."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from patchq.bisect import session as sessions
from patchq.bisect import trial
from patchq.bisect.bench import Local
from patchq.bisect.moves import Between, between
from patchq.bisect.session import Asked, Session
from patchq.config import Project
from patchq.errors import PatchqError
from patchq.progress import SILENT, Progress


@dataclass(frozen=True)
class Opened:
    """A session and its folder; `between`: the moves as they can be made, where they are needed."""

    folder: Path
    session: Session
    between: Between | None = None

    def bench(self, project: Project) -> Local:
        assert self.between is not None
        return Local(project, self.between, self.session.asked, self.folder)


def asked_now(
    project: Project, asked: Asked, offline: bool, progress: Progress = SILENT
) -> tuple[Asked, Between]:
    """The question with A and B as commits, and what moved.

    Raises PatchqError for a command, a cluster or a target that is none, and as `between` does.
    """
    trial.words(asked.run)
    if asked.cluster is not None:
        from patchq.cluster import config, profile

        config.load(project.root, asked.cluster)
        profile.choose(project.root, asked.profile)
    if asked.target is not None:
        from patchq.build.target import find

        find(asked.target)
    found = between(project.root, asked.a, asked.b, asked.queue, offline=offline, progress=progress)
    return replace(asked, a=found.a.commit, b=found.b.commit), found


@contextmanager
def fresh(
    project: Project, asked: Asked, found: Between, state: Path | None, *, again: bool
) -> Iterator[Opened]:
    """The bisection of that question in `state`, or in a folder of its own; it is begun, or goes on
    where it was, and is held until the end of the block.

    Raises PatchqError where another one is there, or somebody is at work on it.
    """
    folder = (state or project.private / "bisect" / asked.key).absolute()
    with sessions.held(folder):
        there = None if again else sessions.load(folder)
        if there is None:
            shutil.rmtree(folder / "logs", ignore_errors=True)
            Local(project, found, asked, folder).clear()
            there = Session(asked, found.moves, labels=(found.a.label, found.b.label))
            sessions.save(folder, there)
        elif there.asked != asked or there.moves != found.moves:
            raise PatchqError(
                f"{folder} holds another bisection",
                "name another folder with --state, or begin anew there with --again",
            )
        yield Opened(folder, there, found)


def there(project: Project, state: Path | None) -> Opened:
    """The bisection in `state`, or the only one of the project. Raises PatchqError."""
    folder = (state or sessions.one(project.private / "bisect")).absolute()
    found = sessions.load(folder)
    if found is None:
        raise PatchqError(f"there is no bisection in {folder}", "give --run and --between")
    return Opened(folder, found)


def with_moves(
    project: Project, opened: Opened, offline: bool, progress: Progress = SILENT
) -> Opened:
    """So that its subsets can be made here. Raises PatchqError where other things moved here."""
    asked = opened.session.asked
    _, found = asked_now(project, asked, offline, progress)
    if found.moves != opened.session.moves:
        raise PatchqError(
            "what moved between A and B is not the same here",
            "use the same patchq and the same settings as where the bisection was begun",
        )
    return replace(opened, between=found)
