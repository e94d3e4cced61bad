"""A project whose `origin` is on the forge, nights that made commits in it, and what was written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from patchq.forge.client import Patience
from patchq.forge.proposals import git_host
from patchq.gitstore import push
from patchq.gitstore.push import Secret
from patchq.nightly import shared
from patchq.nightly.model import Night, Told
from patchq.nightly.settings import Settings
from patchq.nightly.tell import tell
from patchq.render import jsons
from patchq.render.night_words import WORDS
from tests.nightly.tales import night
from tests.render.reports import DONE
from tests.support.forge.issue import Issue
from tests.support.forge.pull import Pull
from tests.support.forge.repo import Repo
from tests.support.forge.server import Forge
from tests.support.history import git

REPO = "acme/queue"
QUICK = Patience(tries=1, backoff=0, secondary=0.1, longest=2, timeout=5)
SETTINGS = Settings(repository=REPO)


class Booth:
    """Where nights are told."""

    def __init__(self, forge: Forge, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.forge, self.folder = forge, folder
        self.repo: Repo = forge.repo(REPO, {"series/series": b"0001-a.patch\n"})
        monkeypatch.setenv("GITHUB_API_URL", forge.api)
        monkeypatch.setenv("GITHUB_TOKEN", forge.token)
        self.root = self.clone("project")
        self.nights: list[Night] = []
        self.seen = 0

    def clone(self, name: str) -> Path:
        git(self.folder, "clone", "-q", self.forge.git(self.repo), name)
        return self.folder / name

    def commit(self, text: str, day: str = "2026-12-01", root: Path | None = None) -> str:
        """What the sync of that day recorded, on main."""
        start = self.repo.bare.sha("main")
        git(root or self.root, "fetch", "-q", "origin")
        files = {"series/series": f"{text}\n".encode()}
        when = datetime.fromisoformat(day).replace(tzinfo=UTC)
        return push.commit_files(root or self.root, start, files, text, when)

    def night(self, day: str, state: Any = "green", series: str = "", **fields: Any) -> Night:
        """A night; with `series` it has a commit and a tree of that name."""
        made = night(day, state, **fields)
        commit = self.commit(series, day) if series else None
        tree = commit and git(self.root, "rev-parse", f"{commit}^{{tree}}").decode().strip()
        return replace(made, commit=commit, tree=tree)

    def tell(self, of: Night, root: Path | None = None, earlier: Sequence[Night] = ()) -> Told:
        """Tells it, and keeps it for those that come after."""
        folder = self.folder / "nights" / of.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "sync.json").write_text(json.dumps(jsons.sync(DONE)))
        nights = tuple(earlier or (each for each in self.nights if each.name != of.name))
        told = tell(root or self.root, SETTINGS, of, folder, nights, WORDS, patience=QUICK)
        self.nights = [*nights, replace(of, told=told)]
        return told

    def add(self, of: Night) -> None:
        """To the branch of all nights."""
        shared.add(self.root, of, secret=Secret(git_host(self.forge.api), self.forge.token))

    def writes(self) -> list[str]:
        """What was written on the forge since it was asked last."""
        new, self.seen = self.forge.asked[self.seen :], len(self.forge.asked)
        return [
            f"{each.method} {each.path.removeprefix('/api/v3/repos/acme/queue')}"
            if each.kind == "rest"
            else "push"
            for each in new
            if each.status < 300
            and each.method != "GET"
            and (each.kind != "git" or "receive-pack" in each.path)
        ]

    def posts(self, of: Night) -> list[int]:
        """Which of a telling's requests of REST make something, counted from 1."""
        before = self.forge.count("rest")
        self.tell(of)
        asked = [each for each in self.forge.asked if each.kind == "rest"][before:]
        return [place for place, each in enumerate(asked, 1) if each.method == "POST"]

    def forget(self) -> None:
        """Nobody was ever told anything."""
        self.repo.pulls.clear()
        self.repo.issues.clear()
        for branch in (SETTINGS.branch, shared.BRANCH):
            if self.repo.head(branch):
                self.repo.deletes(branch)
        self.nights = []

    @property
    def pull(self) -> Pull:
        (one,) = self.repo.pulls.values()
        return one

    @property
    def issue(self) -> Issue:
        (one,) = self.repo.issues.values()
        return one

    def on(self, branch: str, path: str) -> bytes:
        return self.repo.bare.show(branch, path)
